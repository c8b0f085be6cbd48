//! One test per malformed input; the messages are pinned, because they are read by people.

use super::case::{BUCKETS, Case, PRIMES};
use crate::oracle::{backward, forward};
use crate::{AttentionDropout, Problem, RelativeBuckets};

#[track_caller]
fn refused(case: &Case<'_>, message: &str) {
    assert_eq!(
        forward(&case.problem, &case.inputs())
            .unwrap_err()
            .to_string(),
        message
    );
    let gradients = backward(&case.problem, &case.inputs(), &case.output_gradient, None);
    assert_eq!(gradients.unwrap_err().to_string(), message);
}

/// How a message quotes [`PRIMES`].
const SIZES: &str =
    "Problem { batch: 2, heads_q: 6, heads_kv: 3, len_q: 5, len_kv: 7, dim_qk: 11, dim_v: 13 }";

#[test]
fn impossible_sizes() {
    let case = Case {
        problem: Problem {
            heads_kv: 4,
            ..PRIMES
        },
        ..Case::new(PRIMES)
    };
    refused(
        &case,
        "heads_kv must divide heads_q, but heads_q is 6 and heads_kv is 4",
    );
}

#[test]
fn buffers_of_the_wrong_length() {
    let case = Case::new(PRIMES);
    let (q, k, v) = (vec![0.0; 661], vec![0.0; 461], vec![0.0; 13]);
    let message = |name, expected, actual| {
        format!("{name} needs {expected} elements for {SIZES}, but has {actual}")
    };
    refused(&Case { q, ..case.clone() }, &message("q", 660, 661));
    refused(&Case { k, ..case.clone() }, &message("k", 462, 461));
    refused(&Case { v, ..case.clone() }, &message("v", 546, 13));
    let option = |set: fn(&mut Case<'_>), message: String| {
        let mut case = case.clone();
        set(&mut case);
        refused(&case, &message);
    };
    option(
        |case| case.sinks = Some(vec![0.0; 3]),
        message("sinks", 6, 3),
    );
    option(
        |case| case.alibi = Some(vec![0.0; 5]),
        message("alibi", 6, 5),
    );
    option(
        |case| case.relative = Some((vec![0.0; 6], BUCKETS)),
        message("relative", 48, 6),
    );
}

#[test]
fn incoming_gradients_of_the_wrong_length() {
    let case = Case::new(PRIMES);
    let message = |output: &[f64], logsumexp: Option<&[f64]>| {
        backward(&PRIMES, &case.inputs(), output, logsumexp)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        message(&[0.0; 3], None),
        format!("output_gradient needs 780 elements for {SIZES}, but has 3")
    );
    assert_eq!(
        message(&case.output_gradient, Some(&[0.0; 61])),
        format!("logsumexp_gradient needs 60 elements for {SIZES}, but has 61")
    );
}

#[test]
fn impossible_numbers() {
    let case = Case::new(PRIMES);
    let buckets = RelativeBuckets {
        max_distance: 2,
        ..BUCKETS
    };
    refused(
        &Case {
            relative: Some((vec![0.0; 48], buckets)),
            ..case.clone()
        },
        "the max_distance of relative buckets must be more than 2, but is 2",
    );
    for softcap in [0.0, -1.0, f64::INFINITY, f64::NAN] {
        let mut case = case.clone();
        case.softcap = Some(softcap);
        let message = format!("the softcap must be positive and finite, but is {softcap}");
        refused(&case, &message);
    }
    for scale in [f64::INFINITY, f64::NAN] {
        let mut case = case.clone();
        case.scale = Some(scale);
        refused(&case, &format!("the scale must be finite, but is {scale}"));
    }
    refused(
        &Case {
            dropout: Some(AttentionDropout {
                probability: 1.0,
                seed: 0,
            }),
            ..case
        },
        "the dropout probability must be at least 0 and less than 1, but is 1",
    );
}
