//! What each part of a mask hides, drawn as in the docs.

use super::problem;
use crate::CausalAlignment::{self, BottomRight, TopLeft};
use crate::{BlockSize, Blocks, Broadcast, Mask, PositionMask, Segments, Window};

/// One row per query, `#` where visible, as in the docs.
fn draw(mask: Mask<'_>, len_q: usize, len_kv: usize) -> Vec<String> {
    let problem = problem(1, 1, len_q, len_kv);
    mask.validate(&problem).unwrap();
    let symbol = |query, key| {
        if mask.visible(&problem, 0, 0, query, key) {
            '#'
        } else {
            '.'
        }
    };
    (0..len_q)
        .map(|query| (0..len_kv).map(|key| symbol(query, key)).collect())
        .collect()
}

fn causal(alignment: CausalAlignment) -> Mask<'static> {
    Mask {
        by_position: PositionMask::causal(alignment),
        ..Mask::default()
    }
}

fn window(left: Option<usize>, right: Option<usize>) -> Mask<'static> {
    Mask {
        by_position: PositionMask::window(Window { left, right }),
        ..Mask::default()
    }
}

#[test]
fn causal_is_drawn_as_documented() {
    assert_eq!(draw(causal(BottomRight), 2, 5), ["####.", "#####"]);
    assert_eq!(
        draw(causal(BottomRight), 5, 2),
        ["..", "..", "..", "#.", "##"]
    );
    assert_eq!(draw(causal(TopLeft), 2, 5), ["#....", "##..."]);
    assert_eq!(draw(causal(TopLeft), 5, 2), ["#.", "##", "##", "##", "##"]);
    let square = ["#..", "##.", "###"];
    assert_eq!(draw(causal(BottomRight), 3, 3), square);
    assert_eq!(draw(causal(TopLeft), 3, 3), square);
    assert_eq!(CausalAlignment::default(), BottomRight);
}

#[test]
fn windows_are_drawn_as_documented() {
    assert_eq!(
        draw(window(Some(2), Some(0)), 4, 4),
        ["#...", "##..", "###.", ".###"]
    );
    assert_eq!(
        draw(window(Some(1), None), 4, 4),
        ["####", "####", ".###", "..##"]
    );
    assert_eq!(draw(window(Some(1), Some(1)), 2, 5), ["..###", "...##"]);
    assert_eq!(
        draw(window(None, Some(0)), 2, 5),
        draw(causal(BottomRight), 2, 5)
    );
    // More queries than keys: the first positions are negative.
    assert_eq!(
        draw(window(Some(0), Some(2)), 5, 2),
        ["..", "#.", "##", "##", ".#"].to_vec()
    );
}

#[test]
fn a_window_follows_the_causal_alignment() {
    let both = |alignment| {
        let mut mask = window(Some(1), Some(7));
        mask.by_position.causal = Some(alignment);
        mask
    };
    assert_eq!(draw(both(BottomRight), 2, 5), ["..##.", "...##"]);
    assert_eq!(draw(both(TopLeft), 2, 5), ["#....", "##..."]);
    assert_eq!(draw(both(TopLeft), 5, 2), ["#.", "##", ".#", "..", ".."]);
}

#[test]
fn query_offsets_are_drawn_as_documented() {
    let at = |offset, mask| {
        let offsets = [offset];
        let at_offset = Mask {
            query_offsets: Some(&offsets),
            ..mask
        };
        draw(at_offset, 2, 5)
    };
    // Offsets alone hide nothing, and they replace either alignment.
    assert_eq!(at(-2, Mask::default()), ["#####", "#####"]);
    for alignment in [BottomRight, TopLeft] {
        assert_eq!(at(1, causal(alignment)), ["##...", "###.."]);
        assert_eq!(at(3, causal(alignment)), ["####.", "#####"]);
        assert_eq!(at(-1, causal(alignment)), [".....", "#...."]);
        assert_eq!(at(-2, causal(alignment)), [".....", "....."]);
        assert_eq!(at(5, causal(alignment)), ["#####", "#####"]);
    }
    assert_eq!(at(1, window(Some(1), Some(1))), ["###..", ".###."]);
    assert_eq!(at(5, window(Some(1), Some(1))), ["....#", "....."]);
}

#[test]
fn the_widest_windows_do_not_overflow() {
    let mut mask = window(Some(usize::MAX), Some(usize::MAX));
    assert_eq!(draw(mask, 2, 3), ["###", "###"]);
    mask.by_position.causal = Some(TopLeft);
    assert_eq!(draw(mask, 2, 3), ["#..", "##."]);
}

#[test]
fn segments_are_blocks() {
    let segments = Segments {
        queries: &[4, 4, -1, 9],
        keys: &[4, 9, 9, -2, 4],
    };
    let mask = Mask {
        segments: Some(segments),
        ..Mask::default()
    };
    assert_eq!(draw(mask, 4, 5), ["#...#", "#...#", ".....", ".##.."]);
}

#[test]
fn blocks_are_drawn_as_documented() {
    let blocks = |size| Blocks {
        visible: Broadcast::new(&[true, false, false, true], [1, 1, 2, 2]).unwrap(),
        size,
    };
    let mask = |size: [usize; 2]| Mask {
        blocks: Some(blocks(BlockSize::from(size))),
        ..Mask::default()
    };
    assert_eq!(draw(mask([2, 3]), 3, 5), ["###..", "###..", "...##"]);
    assert_eq!(draw(mask([3, 1]), 4, 2), ["#.", "#.", "#.", ".#"]);
    // Blocks are counted from the first query and the first key, whatever the alignment.
    let causal = Mask {
        by_position: PositionMask::causal(BottomRight),
        ..mask([2, 3])
    };
    assert_eq!(draw(causal, 3, 5), ["###..", "###..", "...##"]);
    // Blocks of any size, one entry for all.
    let one = Mask {
        blocks: Some(Blocks {
            visible: Broadcast::new(&[false], [1; 4]).unwrap(),
            size: BlockSize::from(usize::MAX),
        }),
        ..Mask::default()
    };
    assert_eq!(draw(one, 2, 3), ["...", "..."]);
}
