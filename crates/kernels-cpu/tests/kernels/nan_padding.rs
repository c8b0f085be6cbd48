//! What NaN in padding costs: about as much as clean padding, at any length.

use std::time::{Duration, Instant};

use burn_attn_kernels_cpu::{
    Broadcast, Mask, Options, Problem,
    tiled::{Execution, Gradients, Inputs, Rows, RowsMut, Upstream, backward, forward},
};

use crate::{case::fine, run::reals};

/// Two query heads of 64 numbers that share their keys.
fn problem(len_q: usize, len_kv: usize) -> Problem {
    Problem {
        batch: 1,
        heads_q: 2,
        heads_kv: 1,
        len_q,
        len_kv,
        dim_qk: 64,
        dim_v: 64,
    }
}

fn numbers(seed: u64, count: usize) -> Vec<f32> {
    reals::<f32>(&fine(seed, count))
}

/// The times of a forward and of a backward pass, after which no number is NaN.
fn times(problem: Problem, masked: &[bool], [q, k, v]: [&[f32]; 3]) -> [Duration; 2] {
    let p = problem;
    let inputs = Inputs {
        options: Options {
            mask: Mask {
                masked: Some(Broadcast::new(masked, [1, 1, 1, p.len_kv]).unwrap()),
                ..Mask::default()
            },
            ..Options::default()
        },
        ..Inputs::new(problem, q, k, v)
    };
    let execution = Execution::sequential();
    let mut output = vec![0.0; p.output_elements()];
    let mut logsumexp = vec![0.0; p.query_rows()];
    let rows = RowsMut::contiguous(&mut output, p.heads_q, p.len_q, p.dim_v);
    let start = Instant::now();
    forward(&inputs, rows, &mut logsumexp, execution).unwrap();
    let of_forward = start.elapsed();

    let rows = Rows::contiguous(&output, p.heads_q, p.len_q, p.dim_v);
    let upstream = Upstream {
        output: rows,
        logsumexp: &logsumexp,
        output_gradient: rows,
        logsumexp_gradient: None,
    };
    let mut of_q = vec![0.0; q.len()];
    let mut of_k = vec![0.0; k.len()];
    let mut of_v = vec![0.0; v.len()];
    let gradients = Gradients {
        q: Some(RowsMut::contiguous(&mut of_q, p.heads_q, p.len_q, p.dim_qk)),
        k: Some(RowsMut::contiguous(
            &mut of_k, p.heads_kv, p.len_kv, p.dim_qk,
        )),
        v: Some(RowsMut::contiguous(
            &mut of_v, p.heads_kv, p.len_kv, p.dim_v,
        )),
        ..Gradients::default()
    };
    let start = Instant::now();
    backward(&inputs, &upstream, gradients, execution).unwrap();
    let of_backward = start.elapsed();
    for results in [&output, &logsumexp, &of_q, &of_k, &of_v] {
        assert!(results.iter().all(|x| x.is_finite()));
    }
    [of_forward, of_backward]
}

/// `cargo test -p burn-attn-kernels-cpu --test kernels nan_padding -- --ignored --nocapture`
#[test]
#[ignore = "measures times, for a minute"]
fn nan_in_padding_costs_at_most_three_tenths_more() {
    type Padding = (&'static str, fn(usize, usize) -> bool);
    let paddings: [Padding; 2] = [
        ("the second half", |key, len_kv| 2 * key >= len_kv),
        ("every third key", |key, _| key % 3 == 1),
    ];
    let mut worst: f64 = 0.0;
    for len_kv in [512, 2048, 8192] {
        for len_q in [1, 7, len_kv] {
            for (name, hides) in paddings {
                let problem = problem(len_q, len_kv);
                let masked: Vec<bool> = (0..len_kv).map(|key| hides(key, len_kv)).collect();
                let q = numbers(1, problem.query_elements());
                let clean = [2, 3].map(|seed| numbers(seed, problem.key_elements()));
                let dirty = clean.clone().map(|mut rows| {
                    for (row, &masked) in rows.chunks_mut(64).zip(&masked) {
                        if masked {
                            row.fill(f32::NAN);
                        }
                    }
                    rows
                });
                // Interleaved, so that a machine that slows down slows both.
                let runs = (5 + 40_000_000 / (len_q * len_kv)).min(201);
                let mut all = [[Vec::new(), Vec::new()], [Vec::new(), Vec::new()]];
                for _ in 0..runs {
                    for (all, [k, v]) in all.iter_mut().zip([&clean, &dirty]) {
                        let times = times(problem, &masked, [&q, k, v]);
                        all.iter_mut()
                            .zip(times)
                            .for_each(|(all, time)| all.push(time));
                    }
                }
                let [clean, dirty] = all.map(|passes| {
                    passes.map(|mut times| {
                        times.sort();
                        times[times.len() / 2]
                    })
                });
                for (pass, (clean, dirty)) in ["forward", "backward"]
                    .into_iter()
                    .zip(clean.into_iter().zip(dirty))
                {
                    let ratio = dirty.as_secs_f64() / clean.as_secs_f64();
                    worst = worst.max(ratio);
                    println!(
                        "{len_q} queries, {len_kv} keys, {name}, {pass}: {dirty:.2?} with NaN, {clean:.2?} without, {ratio:.2} times"
                    );
                }
            }
        }
    }
    assert!(worst <= 1.3, "{worst:.2} times");
}
