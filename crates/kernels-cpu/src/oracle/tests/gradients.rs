//! The backward against central differences of the forward: every option alone, then together.

use super::case::{BUCKETS, Case, PRIMES, TALL, assert_close, numbers};
use crate::CausalAlignment::{BottomRight, TopLeft};
use crate::{
    BlockSize, Blocks, Broadcast, Dropout, Mask, PositionMask, Problem, RelativeBuckets, Segments,
    Window, alibi_slopes,
};

/// What [`Case::backward`] differentiates; hidden rows add nothing.
fn loss(case: &Case<'_>) -> f64 {
    let forward = case.forward();
    let mut loss: f64 = forward
        .output
        .iter()
        .zip(&case.output_gradient)
        .map(|(o, gradient)| o * gradient)
        .sum();
    if let Some(gradient) = &case.logsumexp_gradient {
        for (&logsumexp, gradient) in forward.logsumexp.iter().zip(gradient) {
            if logsumexp != f64::NEG_INFINITY {
                loss += logsumexp * gradient;
            }
        }
    }
    loss
}

/// `(loss(x + h) - loss(x - h)) / 2h` for each element of the buffer that `select` finds.
fn differences<'a>(
    case: &Case<'a>,
    select: for<'c> fn(&'c mut Case<'a>) -> &'c mut Vec<f64>,
) -> Vec<f64> {
    // The error of a central difference is about h² + ε/h: smallest near 1e-5.
    const STEP: f64 = 1e-5;
    let mut moved = case.clone();
    (0..select(&mut moved).len())
        .map(|index| {
            let original = select(&mut moved)[index];
            let mut at = |number| {
                select(&mut moved)[index] = number;
                loss(&moved)
            };
            let difference = at(original + STEP) - at(original - STEP);
            at(original);
            difference / (2.0 * STEP)
        })
        .collect()
}

#[track_caller]
fn check(case: &Case<'_>) {
    const TOLERANCE: f64 = 2e-8;
    let gradients = case.backward();
    assert_close(
        "q",
        &gradients.q,
        &differences(case, |case| &mut case.q),
        TOLERANCE,
    );
    assert_close(
        "k",
        &gradients.k,
        &differences(case, |case| &mut case.k),
        TOLERANCE,
    );
    assert_close(
        "v",
        &gradients.v,
        &differences(case, |case| &mut case.v),
        TOLERANCE,
    );
    assert_eq!(gradients.bias.is_some(), case.bias.is_some());
    if let Some(bias) = gradients.bias {
        let expected = differences(case, |case| &mut case.bias.as_mut().unwrap().0);
        assert_close("bias", &bias, &expected, TOLERANCE);
    }
    assert_eq!(gradients.alibi.is_some(), case.alibi.is_some());
    if let Some(alibi) = gradients.alibi {
        let expected = differences(case, |case| case.alibi.as_mut().unwrap());
        assert_close("alibi", &alibi, &expected, TOLERANCE);
    }
    assert_eq!(gradients.relative.is_some(), case.relative.is_some());
    if let Some(relative) = gradients.relative {
        let expected = differences(case, |case| &mut case.relative.as_mut().unwrap().0);
        assert_close("relative", &relative, &expected, TOLERANCE);
    }
    assert_eq!(gradients.sinks.is_some(), case.sinks.is_some());
    if let Some(sinks) = gradients.sinks {
        let expected = differences(case, |case| case.sinks.as_mut().unwrap());
        assert_close("sinks", &sinks, &expected, TOLERANCE);
    }
}

/// A mask alone, then with everything else on.
#[track_caller]
fn check_mask(problem: Problem, mask: Mask<'_>) {
    check(&Case {
        mask,
        ..Case::new(problem)
    });
    check(&Case {
        mask,
        ..Case::with_all_options(problem)
    });
}

#[test]
fn plain() {
    check(&Case::new(PRIMES));
    check(&Case::new(TALL));
}

#[test]
fn one_and_all_key_value_heads() {
    check(&Case::new(Problem {
        heads_kv: 1,
        ..PRIMES
    }));
    check(&Case::new(Problem {
        heads_kv: 6,
        ..PRIMES
    }));
}

#[test]
fn scale() {
    check(&Case {
        scale: Some(0.9),
        ..Case::new(PRIMES)
    });
    check(&Case {
        scale: Some(-0.4),
        ..Case::new(PRIMES)
    });
}

#[test]
fn softcap() {
    check(&Case {
        softcap: Some(0.8),
        scale: Some(1.0),
        ..Case::new(PRIMES)
    });
}

#[test]
fn sinks() {
    check(&Case {
        sinks: Some(numbers(8, 6)),
        ..Case::new(PRIMES)
    });
}

/// The three ways to place the queries among the keys.
fn placed(problem: Problem) -> [Case<'static>; 3] {
    [None, Some(BottomRight), Some(TopLeft)].map(|causal| {
        let mask = Mask {
            by_position: PositionMask::new(causal, None),
            ..Mask::default()
        };
        Case::masked_by(problem, mask)
    })
}

#[test]
fn alibi() {
    for problem in [PRIMES, TALL] {
        for case in placed(problem) {
            check(&Case {
                alibi: Some(alibi_slopes(6)),
                ..case
            });
        }
    }
}

#[test]
fn relative() {
    for problem in [PRIMES, TALL] {
        for bidirectional in [false, true] {
            let buckets = RelativeBuckets {
                bidirectional,
                ..BUCKETS
            };
            for case in placed(problem) {
                check(&Case {
                    relative: Some((numbers(8, 8 * 6), buckets)),
                    ..case
                });
            }
        }
    }
}

#[test]
fn dropout() {
    for probability in [0.0, 0.5, 0.95] {
        let dropout = Some(Dropout {
            probability,
            seed: 99,
        });
        check(&Case {
            dropout,
            ..Case::new(PRIMES)
        });
    }
}

#[test]
fn logsumexp_gradient() {
    let logsumexp_gradient = Some(numbers(8, PRIMES.query_rows()));
    check(&Case {
        logsumexp_gradient: logsumexp_gradient.clone(),
        ..Case::new(PRIMES)
    });
    check(&Case {
        logsumexp_gradient,
        sinks: Some(numbers(8, 6)),
        ..Case::new(PRIMES)
    });
}

#[test]
fn all_options() {
    check(&Case::with_all_options(PRIMES));
    check(&Case::with_all_options(TALL));
}

#[test]
fn bias_of_all_sixteen_shapes() {
    let full = [2, 6, 5, 7];
    for pattern in 0..16 {
        let shape: [usize; 4] = std::array::from_fn(|axis| {
            if pattern >> axis & 1 == 1 {
                1
            } else {
                full[axis]
            }
        });
        let bias = Some((numbers(8, shape.iter().product()), shape));
        let case = Case {
            bias,
            ..Case::with_all_options(PRIMES)
        };
        let expected = differences(&case, |case| &mut case.bias.as_mut().unwrap().0);
        assert_close(
            &format!("{shape:?}"),
            &case.backward().bias.unwrap(),
            &expected,
            2e-8,
        );
    }
}

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
