//! ALiBi and the relative bias against the equal dense bias, by way of the distance bias.

use super::case::{BUCKETS, Case, PRIMES, TALL, assert_close, numbers};
use crate::{CausalAlignment, DistanceAxis, Problem, RelativeBuckets, alibi_slopes};

/// The dense bias that equals the distance bias `[heads_q, len_q + len_kv - 1]`.
fn dense(problem: Problem, axis: DistanceAxis, distance: &[f64]) -> (Vec<f64>, [usize; 4]) {
    let mut bias = Vec::new();
    for head in distance.chunks(axis.len()) {
        for query in 0..problem.len_q {
            // No mask of these tests has query offsets.
            let position = query as isize
                + axis
                    .alignment
                    .unwrap()
                    .offset(problem.len_q, problem.len_kv);
            bias.extend((0..problem.len_kv).map(|key| head[axis.index(position, key)]));
        }
    }
    (bias, [1, problem.heads_q, problem.len_q, problem.len_kv])
}

/// Both biases alone, and the distance bias of each, for every alignment of the queries.
fn instances() -> Vec<(Case<'static>, Vec<f64>)> {
    let mut instances = Vec::new();
    for problem in [PRIMES, TALL] {
        for causal in [
            None,
            Some(CausalAlignment::BottomRight),
            Some(CausalAlignment::TopLeft),
        ] {
            let mut case = Case {
                bias: None,
                alibi: None,
                relative: None,
                ..Case::with_all_options(problem)
            };
            case.mask.by_position.causal = causal;
            let axis = DistanceAxis::new(&problem, &case.mask);
            let slopes = alibi_slopes(problem.heads_q);
            let distance = slopes.iter().flat_map(|slope| {
                axis.relative_positions()
                    .map(move |position| -slope * position.abs() as f64)
            });
            let distance = distance.collect();
            let alibi = Some(slopes);
            instances.push((
                Case {
                    alibi,
                    ..case.clone()
                },
                distance,
            ));
            for bidirectional in [false, true] {
                let buckets = RelativeBuckets {
                    bidirectional,
                    ..BUCKETS
                };
                let table = numbers(8, buckets.buckets * problem.heads_q);
                let distance = (0..problem.heads_q).flat_map(|head| {
                    let table = &table;
                    axis.relative_positions().map(move |position| {
                        table[buckets.bucket(position) * problem.heads_q + head]
                    })
                });
                let distance = distance.collect();
                let relative = Some((table, buckets));
                instances.push((
                    Case {
                        relative,
                        ..case.clone()
                    },
                    distance,
                ));
            }
        }
    }
    instances
}

#[test]
fn both_are_instances_of_the_distance_bias_whose_gradient_carries_on_to_slopes_and_table() {
    for (case, distance) in instances() {
        let Problem {
            heads_q,
            len_q,
            len_kv,
            ..
        } = case.problem;
        let axis = DistanceAxis::new(&case.problem, &case.mask);
        let spelled = Case {
            bias: Some(dense(case.problem, axis, &distance)),
            alibi: None,
            relative: None,
            ..case.clone()
        };
        assert_eq!(case.forward(), spelled.forward());
        let (gradients, spelled) = (case.backward(), spelled.backward());
        assert_eq!(gradients.q, spelled.q);
        let mut of_slopes = vec![0.0; heads_q];
        let mut of_table = vec![0.0; BUCKETS.buckets * heads_q];
        for (flat, gradient) in spelled.bias.unwrap().into_iter().enumerate() {
            let (head, query, key) = (
                flat / (len_q * len_kv),
                flat / len_kv % len_q,
                flat % len_kv,
            );
            let position = key as isize - case.mask.position(&case.problem, 0, query);
            of_slopes[head] -= gradient * position.abs() as f64;
            if let Some((_, buckets)) = &case.relative {
                of_table[buckets.bucket(position) * heads_q + head] += gradient;
            }
        }
        if let Some(alibi) = gradients.alibi {
            assert_close("alibi", &alibi, &of_slopes, 1e-13);
        }
        if let Some(relative) = gradients.relative {
            assert_close("relative", &relative, &of_table, 1e-13);
        }
    }
}

#[test]
fn alibi_done_by_hand() {
    // Two queries at positions 1 and 2 of three keys, equal dot products, a slope of ln 2: each token of distance halves the weight.
    let problem = Problem {
        batch: 1,
        heads_q: 1,
        heads_kv: 1,
        len_q: 2,
        len_kv: 3,
        dim_qk: 1,
        dim_v: 1,
    };
    let case = Case {
        q: vec![0.0; 2],
        alibi: Some(vec![2.0_f64.ln()]),
        ..Case::new(problem)
    };
    let expected = [0.25, 0.5, 0.25, 1.0 / 7.0, 2.0 / 7.0, 4.0 / 7.0];
    assert_close("weights", &case.forward().weights, &expected, 1e-15);
    // At an offset of −1 the queries stand at positions −1 and 0, at an offset of 2 at positions 2 and 3.
    let two = Problem {
        batch: 2,
        ..problem
    };
    let case = Case {
        q: vec![0.0; 4],
        alibi: Some(vec![2.0_f64.ln()]),
        ..Case::masked_by(two, |mask| mask.query_offsets = Some(&[-1, 2]))
    };
    let near_first = [4.0, 2.0, 1.0].map(|x| x / 7.0);
    let near_last = [1.0, 2.0, 4.0].map(|x| x / 7.0);
    let expected = [near_first, near_first, near_last, near_last].concat();
    assert_close("weights", &case.forward().weights, &expected, 1e-15);
}

#[test]
fn a_causal_mask_at_offsets_done_by_hand() {
    // All scores are 0, so that a row has equal weights for the keys that it sees.
    let problem = Problem {
        batch: 3,
        heads_q: 1,
        heads_kv: 1,
        len_q: 2,
        len_kv: 3,
        dim_qk: 1,
        dim_v: 1,
    };
    let case = Case {
        q: vec![0.0; 6],
        v: vec![1.0, 3.0, 8.0, 1.0, 3.0, f64::NAN, 1.0, 3.0, 8.0],
        output_gradient: vec![1.0; 6],
        ..Case::masked_by(problem, |mask| {
            mask.by_position.causal = Some(CausalAlignment::BottomRight);
            mask.query_offsets = Some(&[0, 3, -2]);
            mask.key_lengths = Some(&[3, 2, 3]);
        })
    };
    assert_eq!(case.forward().output, [1.0, 2.0, 2.0, 2.0, 0.0, 0.0]);
    let expected = [1.5, 0.5, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0];
    assert_eq!(case.backward().v, expected);
}
