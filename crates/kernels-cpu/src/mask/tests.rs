//! Drawings from the docs, and a second formulation of the whole conjunction that paints rather than compares.

use super::*;
use CausalAlignment::{BottomRight, TopLeft};
use proptest::prelude::*;

fn problem(batch: usize, heads_q: usize, len_q: usize, len_kv: usize) -> Problem {
    Problem {
        batch,
        heads_q,
        heads_kv: 1,
        len_q,
        len_kv,
        dim_qk: 1,
        dim_v: 1,
    }
}

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
fn the_default_hides_nothing() {
    assert_eq!(draw(Mask::default(), 2, 3), ["###", "###"]);
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
    let both = |alignment| Mask {
        by_position: PositionMask {
            causal: Some(alignment),
            ..window(Some(1), Some(7)).by_position
        },
        ..Mask::default()
    };
    assert_eq!(draw(both(BottomRight), 2, 5), ["..##.", "...##"]);
    assert_eq!(draw(both(TopLeft), 2, 5), ["#....", "##..."]);
    assert_eq!(draw(both(TopLeft), 5, 2), ["#.", "##", ".#", "..", ".."]);
}

#[test]
fn query_offsets_are_drawn_as_documented() {
    let at = |offset, mask| {
        let offsets = [offset];
        draw(
            Mask {
                query_offsets: Some(&offsets),
                ..mask
            },
            2,
            5,
        )
    };
    // Alone they hide nothing, and they win over either alignment.
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
    let mask = window(Some(usize::MAX), Some(usize::MAX));
    assert_eq!(draw(mask, 2, 3), ["###", "###"]);
    assert_eq!(
        draw(
            Mask {
                by_position: PositionMask {
                    causal: Some(TopLeft),
                    ..mask.by_position
                },
                ..mask
            },
            2,
            3
        ),
        ["#..", "##."]
    );
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
    // From the first query and the first key, whatever the alignment.
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

#[test]
fn key_lengths_and_segments_belong_to_their_batch_item() {
    let problem = problem(2, 3, 2, 5);
    let mask = Mask {
        key_lengths: Some(&[5, 2]),
        ..Mask::default()
    };
    assert!(mask.visible(&problem, 0, 2, 1, 4));
    assert!(mask.visible(&problem, 1, 2, 1, 1));
    assert!(!mask.visible(&problem, 1, 2, 1, 2));
    let segments = Segments {
        queries: &[0, 0, 0, 1],
        keys: &[0, 0, 0, 0, 0, 0, 0, 1, 1, 1],
    };
    let mask = Mask {
        segments: Some(segments),
        ..Mask::default()
    };
    assert!(mask.visible(&problem, 0, 0, 1, 4));
    assert!(!mask.visible(&problem, 1, 0, 1, 1));
    assert!(mask.visible(&problem, 1, 0, 1, 2));
}

#[test]
fn errors_name_the_offending_values() {
    let message = |mask: Mask<'_>| mask.validate(&problem(2, 3, 5, 7)).unwrap_err().to_string();
    assert_eq!(
        message(Mask {
            key_lengths: Some(&[1, 2, 3]),
            ..Mask::default()
        }),
        "key_lengths needs 2 elements, but has 3"
    );
    assert_eq!(
        message(Mask {
            key_lengths: Some(&[7, 8]),
            ..Mask::default()
        }),
        "the key length of batch item 1 is 8, but len_kv is 7"
    );
    let offsets = |offsets| {
        message(Mask {
            query_offsets: Some(offsets),
            ..Mask::default()
        })
    };
    assert_eq!(offsets(&[1]), "query_offsets needs 2 elements, but has 1");
    assert_eq!(
        offsets(&[8, 0]),
        "the query offset of batch item 0 is 8, but must lie between -len_q = -5 and len_kv = 7"
    );
    assert_eq!(
        offsets(&[7, -6]),
        "the query offset of batch item 1 is -6, but must lie between -len_q = -5 and len_kv = 7"
    );
    assert_eq!(
        offsets(&[-5, i64::MIN]),
        "the query offset of batch item 1 is -9223372036854775808, but must lie between -len_q = -5 and len_kv = 7"
    );
    let segments = |queries, keys| Mask {
        segments: Some(Segments { queries, keys }),
        ..Mask::default()
    };
    assert_eq!(
        message(segments(&[0; 9], &[0; 14])),
        "segments.queries needs 10 elements, but has 9"
    );
    assert_eq!(
        message(segments(&[0; 10], &[0; 7])),
        "segments.keys needs 14 elements, but has 7"
    );
    let masked = Broadcast::new(&[true; 35], [1, 1, 7, 5]).unwrap();
    assert_eq!(
        message(Mask {
            masked: Some(masked),
            ..Mask::default()
        }),
        "the bool mask does not fit: shape [1, 1, 7, 5] does not broadcast to \
         [batch, heads_q, len_q, len_kv] = [2, 3, 5, 7]"
    );
}

/// A mask with its buffers, as proptest makes them.
#[derive(Clone, Debug)]
struct Owned {
    problem: Problem,
    causal: Option<CausalAlignment>,
    window: Option<Window>,
    key_lengths: Option<Vec<usize>>,
    query_offsets: Option<Vec<i64>>,
    segments: Option<(Vec<i64>, Vec<i64>)>,
    blocks: Option<(Vec<bool>, [usize; 4], BlockSize)>,
    masked: Option<(Vec<bool>, [usize; 4])>,
}

impl Owned {
    fn borrow(&self) -> Mask<'_> {
        Mask {
            by_position: PositionMask::new(self.causal, self.window),
            key_lengths: self.key_lengths.as_deref(),
            query_offsets: self.query_offsets.as_deref(),
            segments: self
                .segments
                .as_ref()
                .map(|(queries, keys)| Segments { queries, keys }),
            blocks: self.blocks.as_ref().map(|(data, shape, size)| Blocks {
                visible: Broadcast::new(data, *shape).unwrap(),
                size: *size,
            }),
            masked: self
                .masked
                .as_ref()
                .map(|(data, shape)| Broadcast::new(data, *shape).unwrap()),
        }
    }

    /// The whole visible matrix, hidden part by part: nothing here compares a key with a position.
    fn dense(&self) -> Vec<bool> {
        let Problem {
            batch,
            heads_q,
            len_q,
            len_kv,
            ..
        } = self.problem;
        let mut rows = vec![vec![true; len_kv]; batch * heads_q * len_q];
        for (index, row) in rows.iter_mut().enumerate() {
            let (item, head, query) = (
                index / (heads_q * len_q),
                index / len_q % heads_q,
                index % len_q,
            );
            // Lay the keys on a strip with room on both sides, the query's own position at `centre`. Counting from
            // the end for bottom-right and from the start for top-left, no offset is ever computed but one that is given.
            let room = 64;
            let centre = match (&self.query_offsets, self.causal) {
                (Some(offsets), _) => (room + query).strict_add_signed(offsets[item] as isize),
                (None, Some(TopLeft)) => room + query,
                (None, _) => room + len_kv + query - len_q,
            };
            let mut strip = vec![true; 2 * room + len_kv];
            if self.causal.is_some() {
                strip[centre + 1..].fill(false);
            }
            if let Some(window) = self.window {
                let left = window.left.map_or(0, |left| centre.saturating_sub(left));
                strip[..left].fill(false);
                for cell in strip
                    .iter_mut()
                    .skip(centre + 1)
                    .skip(window.right.unwrap_or(room * 9))
                {
                    *cell = false;
                }
            }
            row.copy_from_slice(&strip[room..room + len_kv]);
            if let Some(lengths) = &self.key_lengths {
                row[lengths[item]..].fill(false);
            }
            if let Some((queries, keys)) = &self.segments {
                let own = queries.chunks(len_q).nth(item).unwrap()[query];
                for (cell, key) in row
                    .iter_mut()
                    .zip(keys.chunks(len_kv.max(1)).nth(item).into_iter().flatten())
                {
                    *cell &= own == *key;
                }
            }
            if let Some((data, shape, size)) = &self.blocks {
                // Cut into pieces instead of divided.
                let queries: Vec<usize> = (0..len_q).collect();
                let mut pieces = queries.chunks(size.queries);
                let table_row = pieces.position(|piece| piece.contains(&query)).unwrap();
                for (column, cells) in row.chunks_mut(size.keys).enumerate() {
                    let at = [item, head, table_row, column];
                    let flat = at
                        .iter()
                        .zip(shape)
                        .fold(0, |flat, (at, size)| flat * size + at % size);
                    if !data[flat] {
                        cells.fill(false);
                    }
                }
            }
            if let Some((data, shape)) = &self.masked {
                for (key, cell) in row.iter_mut().enumerate() {
                    // Modulo broadcasts: anything modulo 1 is 0.
                    let at = [
                        item % shape[0],
                        head % shape[1],
                        query % shape[2],
                        key % shape[3],
                    ];
                    let flat = at
                        .iter()
                        .zip(shape)
                        .fold(0, |flat, (at, size)| flat * size + at);
                    *cell &= !data[flat];
                }
            }
        }
        rows.concat()
    }
}

fn owned() -> impl Strategy<Value = Owned> {
    let sizes = (
        1..3_usize,
        1..4_usize,
        1..12_usize,
        0..12_usize,
        any::<[bool; 4]>(),
        (1..9_usize, 1..9_usize),
    );
    sizes.prop_flat_map(|(batch, heads_q, len_q, len_kv, ones, (queries, keys))| {
        let full = [batch, heads_q, len_q, len_kv];
        let shape: [usize; 4] = std::array::from_fn(|axis| if ones[axis] { 1 } else { full[axis] });
        let elements: usize = shape.iter().product();
        let size = BlockSize { queries, keys };
        let [rows, columns] = size.table(len_q, len_kv);
        let full = [batch, heads_q, rows, columns];
        let table: [usize; 4] =
            std::array::from_fn(|axis| if ones[3 - axis] { 1 } else { full[axis] });
        let entries: usize = table.iter().product();
        let ids = |len| prop::collection::vec(0..3_i64, len);
        let reach = || prop::option::of(0..14_usize);
        (
            prop::option::of(prop_oneof![Just(BottomRight), Just(TopLeft)]),
            prop::option::of((reach(), reach()).prop_map(|(left, right)| Window { left, right })),
            prop::option::of(prop::collection::vec(0..=len_kv, batch)),
            prop::option::of(prop::collection::vec(
                -(len_q as i64)..=len_kv as i64,
                batch,
            )),
            prop::option::of((ids(batch * len_q), ids(batch * len_kv))),
            prop::option::of(prop::collection::vec(prop::bool::weighted(0.7), entries)),
            prop::option::of(prop::collection::vec(prop::bool::weighted(0.2), elements)),
        )
            .prop_map(
                move |(causal, window, key_lengths, query_offsets, segments, blocks, masked)| {
                    Owned {
                        problem: problem(batch, heads_q, len_q, len_kv),
                        causal,
                        window,
                        key_lengths,
                        query_offsets,
                        segments,
                        blocks: blocks.map(|data| (data, table, size)),
                        masked: masked.map(|data| (data, shape)),
                    }
                },
            )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn visible_is_the_dense_matrix(owned in owned()) {
        let (mask, problem) = (owned.borrow(), owned.problem);
        prop_assert_eq!(mask.validate(&problem), Ok(()));
        let mut visible = Vec::new();
        for batch_item in 0..problem.batch {
            for head in 0..problem.heads_q {
                for query in 0..problem.len_q {
                    visible.extend((0..problem.len_kv).map(|key| {
                        mask.visible(&problem, batch_item, head, query, key)
                    }));
                }
            }
        }
        prop_assert_eq!(visible, owned.dense());
    }

    #[test]
    fn key_ranges_are_exact_for_structural_masks_and_never_go_back(owned in owned()) {
        let owned = Owned { segments: None, blocks: None, masked: None, ..owned };
        let (mask, problem, dense) = (owned.borrow(), owned.problem, owned.dense());
        for batch_item in 0..problem.batch {
            let mut previous = 0..0;
            for query in 0..problem.len_q {
                let range = mask.key_range(&problem, batch_item, query);
                prop_assert!(previous.start <= range.start && previous.end <= range.end);
                prop_assert!(range.start <= range.end && range.end <= problem.len_kv);
                let row = problem.query_row(batch_item, 0, query) * problem.len_kv;
                for key in 0..problem.len_kv {
                    prop_assert_eq!(range.contains(&key), dense[row + key]);
                }
                previous = range;
            }
        }
    }
}
