//! The backward against central differences of the forward: every mask alone, then together.

use super::case::{PRIMES, TALL, numbers};
use super::differences::check_mask;
use crate::CausalAlignment::{BottomRight, TopLeft};
use crate::{BlockSize, Blocks, Broadcast, Segments, Window};

#[test]
fn causal() {
    for problem in [PRIMES, TALL] {
        for alignment in [BottomRight, TopLeft] {
            check_mask(problem, |mask| mask.by_position.causal = Some(alignment));
        }
    }
}

#[test]
fn window() {
    let window = Some(Window {
        left: Some(1),
        right: Some(2),
    });
    for causal in [None, Some(BottomRight), Some(TopLeft)] {
        check_mask(PRIMES, |mask| {
            mask.by_position.causal = causal;
            mask.by_position.window = window;
        });
    }
    check_mask(TALL, |mask| mask.by_position.window = window);
}

#[test]
fn key_lengths() {
    check_mask(PRIMES, |mask| mask.key_lengths = Some(&[3, 6]));
    check_mask(PRIMES, |mask| mask.key_lengths = Some(&[7, 0]));
}

#[test]
fn query_offsets() {
    for (offsets, lengths) in [([-2, 4], [7, 7]), ([-5, 7], [7, 7]), ([1, -2], [6, 3])] {
        for causal in [None, Some(BottomRight)] {
            check_mask(PRIMES, |mask| {
                mask.by_position.causal = causal;
                mask.by_position.window = Some(Window {
                    left: Some(4),
                    right: None,
                });
                mask.key_lengths = Some(&lengths);
                mask.query_offsets = Some(&offsets);
            });
        }
    }
}

#[test]
fn segments() {
    let queries = [0, 0, 1, 1, 5, 0, 1, 1, 2, 2];
    let keys = [0, 0, 1, 1, 1, 1, 9, 0, 0, 1, 1, 1, 1, 2];
    let segments = Segments {
        queries: &queries,
        keys: &keys,
    };
    check_mask(PRIMES, |mask| mask.segments = Some(segments));
}

#[test]
fn masked() {
    for shape in [[2, 6, 5, 7], [2, 1, 1, 7], [1, 6, 5, 1], [1, 1, 5, 7]] {
        let random = numbers(8, shape.iter().product());
        let hidden: Vec<bool> = random.into_iter().map(|number| number > 0.2).collect();
        let masked = Broadcast::new(&hidden, shape).unwrap();
        check_mask(PRIMES, |mask| mask.masked = Some(masked));
    }
}

#[test]
fn block_tables() {
    for shape in [[2, 6, 3, 2], [2, 1, 1, 2], [1, 6, 3, 1]] {
        let random = numbers(8, shape.iter().product());
        let visible: Vec<bool> = random.into_iter().map(|number| number < 0.2).collect();
        let blocks = Blocks {
            visible: Broadcast::new(&visible, shape).unwrap(),
            size: BlockSize::from([2, 4]),
        };
        check_mask(PRIMES, |mask| mask.blocks = Some(blocks));
    }
}

#[test]
fn all_masks_together() {
    let queries = [0, 0, 0, 1, 1].repeat(2);
    let keys = [0, 0, 0, 1, 1, 1, 1].repeat(2);
    let hidden: Vec<bool> = numbers(8, 2 * 7)
        .into_iter()
        .map(|number| number > 0.7)
        .collect();
    let shown = [true, true, true, true, false, true];
    check_mask(PRIMES, |mask| {
        mask.by_position.causal = Some(BottomRight);
        mask.by_position.window = Some(Window {
            left: Some(4),
            right: None,
        });
        mask.key_lengths = Some(&[6, 5]);
        mask.query_offsets = Some(&[1, 3]);
        mask.segments = Some(Segments {
            queries: &queries,
            keys: &keys,
        });
        mask.blocks = Some(Blocks {
            visible: Broadcast::new(&shown, [1, 1, 2, 3]).unwrap(),
            size: BlockSize::from(3),
        });
        mask.masked = Some(Broadcast::new(&hidden, [2, 1, 1, 7]).unwrap());
    });
}
