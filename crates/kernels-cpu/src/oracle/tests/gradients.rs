//! The backward against central differences of the forward: every option alone, then together.

use super::case::{BUCKETS, Case, PRIMES, TALL, assert_close, numbers};
use super::differences::{check, differences};
use crate::CausalAlignment::{BottomRight, TopLeft};
use crate::{AttentionDropout, Mask, PositionMask, Problem, RelativeBuckets, alibi_slopes};

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
        let dropout = Some(AttentionDropout {
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
