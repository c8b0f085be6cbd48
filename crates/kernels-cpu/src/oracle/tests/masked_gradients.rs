//! The backward against central differences of the forward: every mask alone, then together.

use super::case::{PRIMES, TALL, numbers};
use super::differences::check_mask;
use crate::CausalAlignment::{BottomRight, TopLeft};
use crate::{BlockSize, Blocks, Broadcast, Mask, PositionMask, Segments, Window};

#[test]
fn causal() {
    for problem in [PRIMES, TALL] {
        for alignment in [BottomRight, TopLeft] {
            check_mask(
                problem,
                Mask {
                    by_position: PositionMask::causal(alignment),
                    ..Mask::default()
                },
            );
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
        check_mask(
            PRIMES,
            Mask {
                by_position: PositionMask::new(causal, window),
                ..Mask::default()
            },
        );
    }
    check_mask(
        TALL,
        Mask {
            by_position: PositionMask::new(None, window),
            ..Mask::default()
        },
    );
}

#[test]
fn key_lengths() {
    check_mask(
        PRIMES,
        Mask {
            key_lengths: Some(&[3, 6]),
            ..Mask::default()
        },
    );
    check_mask(
        PRIMES,
        Mask {
            key_lengths: Some(&[7, 0]),
            ..Mask::default()
        },
    );
}

#[test]
fn query_offsets() {
    for (offsets, lengths) in [([-2, 4], [7, 7]), ([-5, 7], [7, 7]), ([1, -2], [6, 3])] {
        for causal in [None, Some(BottomRight)] {
            check_mask(
                PRIMES,
                Mask {
                    by_position: PositionMask::new(
                        causal,
                        Some(Window {
                            left: Some(4),
                            right: None,
                        }),
                    ),
                    key_lengths: Some(&lengths),
                    query_offsets: Some(&offsets),
                    ..Mask::default()
                },
            );
        }
    }
}

#[test]
fn segments() {
    let queries = [0, 0, 1, 1, 5, 0, 1, 1, 2, 2];
    let keys = [0, 0, 1, 1, 1, 1, 9, 0, 0, 1, 1, 1, 1, 2];
    let segments = Some(Segments {
        queries: &queries,
        keys: &keys,
    });
    check_mask(
        PRIMES,
        Mask {
            segments,
            ..Mask::default()
        },
    );
}

#[test]
fn masked() {
    for shape in [[2, 6, 5, 7], [2, 1, 1, 7], [1, 6, 5, 1], [1, 1, 5, 7]] {
        let random = numbers(8, shape.iter().product());
        let hidden: Vec<bool> = random.into_iter().map(|number| number > 0.2).collect();
        let masked = Some(Broadcast::new(&hidden, shape).unwrap());
        check_mask(
            PRIMES,
            Mask {
                masked,
                ..Mask::default()
            },
        );
    }
}

#[test]
fn block_tables() {
    for shape in [[2, 6, 3, 2], [2, 1, 1, 2], [1, 6, 3, 1]] {
        let random = numbers(8, shape.iter().product());
        let visible: Vec<bool> = random.into_iter().map(|number| number < 0.2).collect();
        check_mask(
            PRIMES,
            Mask {
                blocks: Some(Blocks {
                    visible: Broadcast::new(&visible, shape).unwrap(),
                    size: BlockSize::from([2, 4]),
                }),
                ..Mask::default()
            },
        );
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
    check_mask(
        PRIMES,
        Mask {
            first_keys: None,
            by_position: PositionMask::new(
                Some(BottomRight),
                Some(Window {
                    left: Some(4),
                    right: None,
                }),
            ),
            key_lengths: Some(&[6, 5]),
            query_offsets: Some(&[1, 3]),
            segments: Some(Segments {
                queries: &queries,
                keys: &keys,
            }),
            blocks: Some(Blocks {
                visible: Broadcast::new(&[true, true, true, true, false, true], [1, 1, 2, 3])
                    .unwrap(),
                size: BlockSize::from(3),
            }),
            masked: Some(Broadcast::new(&hidden, [2, 1, 1, 7]).unwrap()),
        },
    );
}
