//! The backward against central differences of the forward: every option alone, then together.

use super::case::{BUCKETS, Case, PRIMES, TALL, assert_close, numbers};
use super::differences::{check, differences};
use crate::CausalAlignment::{BottomRight, TopLeft};
use crate::{AttentionDropout, Problem, RelativeBuckets, alibi_slopes};

#[test]
fn plain() {
    check(&Case::new(PRIMES));
    check(&Case::new(TALL));
}

#[test]
fn one_and_all_key_value_heads() {
    for heads_kv in [1, 6] {
        check(&Case::new(Problem { heads_kv, ..PRIMES }));
    }
}

/// One option alone.
#[track_caller]
fn check_with(set: impl FnOnce(&mut Case<'_>)) {
    let mut case = Case::new(PRIMES);
    set(&mut case);
    check(&case);
}

#[test]
fn scale() {
    for scale in [0.9, -0.4] {
        check_with(|case| case.scale = Some(scale));
    }
}

#[test]
fn softcap() {
    check_with(|case| (case.softcap, case.scale) = (Some(0.8), Some(1.0)));
}

#[test]
fn sinks() {
    check_with(|case| case.sinks = Some(numbers(8, 6)));
}

/// The three ways to place the queries among the keys.
fn placed(problem: Problem) -> [Case<'static>; 3] {
    [None, Some(BottomRight), Some(TopLeft)]
        .map(|causal| Case::masked_by(problem, |mask| mask.by_position.causal = causal))
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
        check_with(|case| {
            case.dropout = Some(AttentionDropout {
                probability,
                seed: 99,
            });
        });
    }
}

#[test]
fn logsumexp_gradient() {
    let numbers = |count| Some(numbers(8, count));
    check_with(|case| case.logsumexp_gradient = numbers(60));
    check_with(|case| (case.logsumexp_gradient, case.sinks) = (numbers(60), numbers(6)));
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
        let expected = differences(&case, |case| Some(&mut case.bias.as_mut()?.0));
        assert_close(
            &format!("{shape:?}"),
            &case.backward().bias.unwrap(),
            &expected.unwrap(),
            2e-8,
        );
    }
}
