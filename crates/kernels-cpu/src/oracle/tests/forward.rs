//! The forward against the equations that define it.

use super::case::{Case, PRIMES, assert_close, numbers};
use crate::{AttentionDropout, Mask, Problem, Segments};

const EXACT: f64 = 1e-13;

/// The rows `[from, from + keep)` of every head of a `[.., len, dim]` buffer.
fn rows(data: &[f64], len: usize, dim: usize, from: usize, keep: usize) -> Vec<f64> {
    data.chunks(len * dim)
        .flat_map(|head| &head[from * dim..(from + keep) * dim])
        .copied()
        .collect()
}

#[test]
fn a_case_done_by_hand() {
    // Scores 0 and ln 3, so weights 1/4 and 3/4, and a denominator of 4.
    let problem = Problem {
        batch: 1,
        heads_q: 1,
        heads_kv: 1,
        len_q: 1,
        len_kv: 2,
        dim_qk: 4,
        dim_v: 3,
    };
    let case = Case {
        q: vec![0.0, 2.0, 0.0, 0.0],
        k: vec![9.0, 0.0, 9.0, 9.0, 9.0, 3.0_f64.ln(), 9.0, 9.0],
        v: vec![4.0, 0.0, 8.0, 0.0, 4.0, -8.0],
        ..Case::new(problem)
    };
    let forward = case.forward();
    assert_close("weights", &forward.weights, &[0.25, 0.75], EXACT);
    assert_close("output", &forward.output, &[1.0, 3.0, -4.0], EXACT);
    assert_close("logsumexp", &forward.logsumexp, &[4.0_f64.ln()], EXACT);
    // A sink of ln 4 doubles the denominator and has no value.
    let forward = Case {
        sinks: Some(vec![4.0_f64.ln()]),
        ..case
    }
    .forward();
    assert_close("weights", &forward.weights, &[0.125, 0.375], EXACT);
    assert_close("output", &forward.output, &[0.5, 1.5, -2.0], EXACT);
    assert_close("logsumexp", &forward.logsumexp, &[8.0_f64.ln()], EXACT);
}

#[test]
fn every_output_is_the_weighted_sum_of_its_own_heads_values() {
    let case = Case::new(PRIMES);
    let forward = case.forward();
    let Problem {
        heads_q,
        len_q,
        len_kv,
        dim_v,
        ..
    } = PRIMES;
    for (index, &actual) in forward.output.iter().enumerate() {
        let (row, d) = (index / dim_v, index % dim_v);
        let (item, head) = (row / (heads_q * len_q), row / len_q % heads_q);
        let values = (item * 3 + head / 2) * len_kv;
        let weights = &forward.weights[row * len_kv..][..len_kv];
        let expected: f64 = (0..len_kv)
            .map(|key| weights[key] * case.v[(values + key) * dim_v + d])
            .sum();
        assert_close("output", &[actual], &[expected], EXACT);
        assert_close("row sum", &[weights.iter().sum()], &[1.0], EXACT);
    }
}

#[test]
fn grouped_heads_are_repeated_heads() {
    let grouped = Case::with_all_options(PRIMES);
    let repeat = |data: &[f64], dim: usize| -> Vec<f64> {
        data.chunks(PRIMES.len_kv * dim)
            .flat_map(|head| [head, head].concat())
            .collect()
    };
    let repeated = Case {
        problem: Problem {
            heads_kv: 6,
            ..PRIMES
        },
        k: repeat(&grouped.k, PRIMES.dim_qk),
        v: repeat(&grouped.v, PRIMES.dim_v),
        ..grouped.clone()
    };
    assert_eq!(grouped.forward(), repeated.forward());
}

#[test]
fn segments_are_separate_problems() {
    let (queries, keys) = ([0, 0, 1, 1, 1].repeat(2), [0, 0, 0, 0, 1, 1, 1].repeat(2));
    let segments = Segments {
        queries: &queries,
        keys: &keys,
    };
    let packed = Case::masked_by(PRIMES, |mask| mask.segments = Some(segments));
    let output = packed.forward().output;
    for (from_q, len_q, from_kv, len_kv) in [(0, 2, 0, 4), (2, 3, 4, 3)] {
        let alone = Case {
            problem: Problem {
                len_q,
                len_kv,
                ..PRIMES
            },
            q: rows(&packed.q, 5, 11, from_q, len_q),
            k: rows(&packed.k, 7, 11, from_kv, len_kv),
            v: rows(&packed.v, 7, 13, from_kv, len_kv),
            mask: Mask::default(),
            ..packed.clone()
        };
        assert_eq!(rows(&output, 5, 13, from_q, len_q), alone.forward().output);
    }
}

#[test]
fn a_sink_is_one_more_key_without_a_value() {
    // The extra key is all zeros, and its score is the bias of its head.
    let sinks = numbers(9, PRIMES.heads_q);
    let with_sinks = Case {
        sinks: Some(sinks.clone()),
        ..Case::new(PRIMES)
    }
    .forward();
    let plain = Case::new(PRIMES);
    let extend = |data: &[f64], dim: usize| -> Vec<f64> {
        data.chunks(7 * dim)
            .flat_map(|head| [head, &vec![0.0; dim]].concat())
            .collect()
    };
    let bias = sinks
        .iter()
        .flat_map(|&sink| [[0.0; 7].as_slice(), &[sink]].concat())
        .collect();
    let extended = Case {
        problem: Problem {
            len_kv: 8,
            ..PRIMES
        },
        k: extend(&plain.k, 11),
        v: extend(&plain.v, 13),
        bias: Some((bias, [1, 6, 1, 8])),
        ..plain
    }
    .forward();
    assert_close("output", &with_sinks.output, &extended.output, EXACT);
    assert_close(
        "logsumexp",
        &with_sinks.logsumexp,
        &extended.logsumexp,
        EXACT,
    );
}

#[test]
fn partial_results_merge_through_the_logsumexp() {
    let whole = Case::new(PRIMES);
    let part = |from, len_kv| {
        let problem = Problem { len_kv, ..PRIMES };
        let (k, v) = (
            rows(&whole.k, 7, 11, from, len_kv),
            rows(&whole.v, 7, 13, from, len_kv),
        );
        Case {
            problem,
            k,
            v,
            ..whole.clone()
        }
        .forward()
    };
    let (left, right, whole) = (part(0, 3), part(3, 4), whole.forward());
    for row in 0..PRIMES.query_rows() {
        let share = [&left, &right].map(|part| (part.logsumexp[row] - whole.logsumexp[row]).exp());
        assert_close("shares", &[share[0] + share[1]], &[1.0], EXACT);
        for d in row * 13..(row + 1) * 13 {
            let merged = share[0] * left.output[d] + share[1] * right.output[d];
            assert_close("output", &[merged], &[whole.output[d]], EXACT);
        }
    }
}

#[test]
fn the_order_of_key_value_pairs_does_not_matter() {
    let order = [4, 0, 6, 2, 5, 1, 3];
    let shuffle = |data: &[f64], dim: usize| -> Vec<f64> {
        data.chunks(7 * dim)
            .flat_map(|head| order.map(|key| head[key * dim..][..dim].to_vec()).concat())
            .collect()
    };
    // All options except those that depend on the index of a key.
    let original = Case {
        alibi: None,
        relative: None,
        dropout: None,
        ..Case::with_all_options(PRIMES)
    };
    let (bias, shape) = original.bias.clone().unwrap();
    let shuffled = Case {
        k: shuffle(&original.k, 11),
        v: shuffle(&original.v, 13),
        bias: Some((shuffle(&bias, 1), shape)),
        ..original.clone()
    };
    let (before, after) = (original.forward(), shuffled.forward());
    assert_close("output", &after.output, &before.output, EXACT);
    assert_close("logsumexp", &after.logsumexp, &before.logsumexp, EXACT);
    assert_close(
        "weights",
        &after.weights,
        &shuffle(&before.weights, 1),
        EXACT,
    );
    let (before, after) = (original.backward(), shuffled.backward());
    assert_close("q", &after.q, &before.q, EXACT);
    assert_close("k", &after.k, &shuffle(&before.k, 11), EXACT);
    assert_close("v", &after.v, &shuffle(&before.v, 13), EXACT);
}

#[test]
fn the_bias_comes_after_the_softcap() {
    // A bias far beyond the softcap moves the logsumexp by its full amount.
    let capped = Case {
        softcap: Some(0.5),
        scale: Some(100.0),
        ..Case::new(PRIMES)
    };
    let biased = Case {
        bias: Some((vec![30.0], [1, 1, 1, 1])),
        ..capped.clone()
    };
    let (capped, biased) = (capped.forward(), biased.forward());
    let moved: Vec<_> = capped
        .logsumexp
        .iter()
        .map(|logsumexp| logsumexp + 30.0)
        .collect();
    assert_close("logsumexp", &biased.logsumexp, &moved, EXACT);
    assert_close("output", &biased.output, &capped.output, EXACT);
    // Seven scores within 0.5 of zero.
    assert!(
        capped
            .logsumexp
            .iter()
            .all(|logsumexp| (logsumexp - 7.0_f64.ln()).abs() < 0.5)
    );
}

#[test]
fn a_wide_softcap_and_the_default_scale_change_nothing() {
    let plain = Case::new(PRIMES);
    let spelled = Case {
        softcap: Some(1e6),
        scale: Some(11.0_f64.sqrt().recip()),
        ..plain.clone()
    };
    assert_close(
        "output",
        &spelled.forward().output,
        &plain.forward().output,
        1e-10,
    );
}

#[test]
fn dropout_thins_the_output_but_not_the_weights() {
    let plain = Case::new(PRIMES);
    let dropout = AttentionDropout {
        probability: 0.4,
        seed: 5,
    };
    let dropped = Case {
        dropout: Some(dropout),
        ..plain.clone()
    };
    assert_eq!(dropped.forward().weights, plain.forward().weights);
    assert_eq!(dropped.forward().logsumexp, plain.forward().logsumexp);
    let (weights, output) = (plain.forward().weights, dropped.forward().output);
    // One row in full, with the pattern asked for weight by weight.
    let (item, head, query) = (1, 4, 3);
    let row = (item * 6 + head) * 5 + query;
    for d in 0..13 {
        let kept = (0..7).filter(|&key| dropout.keep(item, head, query, key));
        let value = |key| plain.v[((item * 3 + head / 2) * 7 + key) * 13 + d];
        let expected: f64 = kept
            .map(|key| weights[row * 7 + key] / 0.6 * value(key))
            .sum();
        assert_close("output", &[output[row * 13 + d]], &[expected], EXACT);
    }
    let none = Case {
        dropout: Some(AttentionDropout {
            probability: 0.0,
            seed: 5,
        }),
        ..plain.clone()
    };
    assert_eq!(none.forward(), plain.forward());
}

#[test]
fn large_scores_stay_in_range() {
    let forward = Case {
        scale: Some(1e6),
        ..Case::new(PRIMES)
    }
    .forward();
    assert!(
        forward
            .output
            .iter()
            .chain(&forward.logsumexp)
            .all(|number| number.is_finite())
    );
    for row in forward.weights.chunks(7) {
        assert_close("row sum", &[row.iter().sum()], &[1.0], 1e-9);
    }
}
