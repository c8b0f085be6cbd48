//! One test per malformed input; the messages are pinned, because they are read by people.

use super::case::{BUCKETS, Case, PRIMES};
use crate::oracle::{backward, forward};
use crate::{AttentionDropout, Mask, Problem, RelativeBuckets};

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
    refused(
        &Case {
            sinks: Some(vec![0.0; 3]),
            ..case.clone()
        },
        &message("sinks", 6, 3),
    );
    refused(
        &Case {
            alibi: Some(vec![0.0; 5]),
            ..case.clone()
        },
        &message("alibi", 6, 5),
    );
    refused(
        &Case {
            relative: Some((vec![0.0; 6], BUCKETS)),
            ..case
        },
        &message("relative", 48, 6),
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
fn a_mask_that_does_not_fit() {
    let case = Case::masked_by(
        PRIMES,
        Mask {
            key_lengths: Some(&[7]),
            ..Mask::default()
        },
    );
    refused(&case, "key_lengths needs 2 elements, but has 1");
    let case = Case::masked_by(
        PRIMES,
        Mask {
            query_offsets: Some(&[3, 8]),
            ..Mask::default()
        },
    );
    refused(
        &case,
        "the query offset of batch item 1 is 8, but must lie between -len_q = -5 and len_kv = 7",
    );
}

#[test]
fn a_bias_that_does_not_fit() {
    let case = Case {
        bias: Some((vec![0.0; 3], [1, 3, 1, 1])),
        ..Case::new(PRIMES)
    };
    refused(
        &case,
        "the bias does not fit: shape [1, 3, 1, 1] does not broadcast to \
         [batch, heads_q, len_q, len_kv] = [2, 6, 5, 7]",
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
        let message = format!("the softcap must be positive and finite, but is {softcap}");
        refused(
            &Case {
                softcap: Some(softcap),
                ..case.clone()
            },
            &message,
        );
    }
    for scale in [f64::INFINITY, f64::NAN] {
        let message = format!("the scale must be finite, but is {scale}");
        refused(
            &Case {
                scale: Some(scale),
                ..case.clone()
            },
            &message,
        );
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
