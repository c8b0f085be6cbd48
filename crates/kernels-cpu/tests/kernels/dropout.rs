//! Dropout in the kernels: which weights are dropped, how many, and that the mean stays the same.

use burn_attn_kernels_cpu::AttentionDropout;

use crate::{
    case::{Case, tensor},
    paths,
    run::{PORTABLE, USUAL, run},
};

/// Output and value gradient are the weights themselves: all scores are 0, and values and incoming gradients are the
/// rows of unit matrices.
fn of_weights(sizes: [usize; 7], dropout: AttentionDropout) -> Case {
    let [batch, heads_q, heads_kv, len_q, len_kv, dim_qk, _] = sizes;
    // The rows of values need `len_kv` dims, the rows of incoming gradients `len_q`.
    let dim_v = len_q.max(len_kv);
    let sizes = [batch, heads_q, heads_kv, len_q, len_kv, dim_qk, dim_v];
    let mut case = Case::new("dropout", sizes);
    case.query.fill(0.0);
    let unit = |index: usize, len: usize| f64::from(index % dim_v == index / dim_v % len);
    for (index, x) in case.value.iter_mut().enumerate() {
        *x = unit(index, len_kv);
    }
    for (index, x) in case.output_gradient.iter_mut().enumerate() {
        *x = unit(index, len_q);
    }
    case.dropout = Some(dropout);
    case
}

#[test]
#[cfg_attr(miri, ignore = "too many numbers for an interpreter")]
fn the_kernels_drop_what_the_function_says() {
    let dropout = AttentionDropout {
        probability: 0.37,
        seed: 0xdead_beef_1234_5678,
    };
    // One query head for each key/value head, so that the value gradient is a weight and no sum of weights.
    for sizes in [
        [2, 3, 3, 7, 11, 3, 0],
        [1, 2, 2, 137, 149, 3, 0],
        [2, 3, 3, 1, 29, 3, 0],
    ] {
        let case = of_weights(sizes, dropout);
        let p = case.problem;
        for how in [USUAL, PORTABLE] {
            let results = run::<f32>(&case, how);
            let (output, gradient) = (
                tensor(&results, "output"),
                tensor(&results, "value gradient"),
            );
            for row in 0..p.query_rows() {
                let (query, head) = (row % p.len_q, row / p.len_q % p.heads_q);
                let batch_item = row / p.len_q / p.heads_q;
                for key in 0..p.len_kv {
                    let keep = dropout.keep(batch_item, head, query, key);
                    let expected = if keep {
                        dropout.kept_scale() / p.len_kv as f64
                    } else {
                        0.0
                    };
                    let from_key = (p.key_row(batch_item, head, key)) * p.dim_v + query;
                    for weight in [output[row * p.dim_v + key], gradient[from_key]] {
                        let error = (weight - expected).abs();
                        assert!(
                            error < 1e-6 * expected.max(1e-9),
                            "{weight} instead of {expected}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "too many numbers for an interpreter")]
fn the_kept_fraction_is_one_minus_the_probability() {
    for probability in [0.1, 0.5, 0.9] {
        let dropout = AttentionDropout {
            probability,
            seed: 5,
        };
        let case = of_weights([2, 2, 2, 127, 131, 1, 0], dropout);
        let results = run::<f32>(&case, USUAL);
        let kept = tensor(&results, "output")
            .iter()
            .filter(|&&weight| weight > 0.0)
            .count();
        let all = case.problem.score_elements() as f64;
        let four_sigma = 4.0 * (probability * (1.0 - probability) / all).sqrt();
        let fraction = kept as f64 / all;
        assert!(
            (fraction - (1.0 - probability)).abs() < four_sigma,
            "{fraction} at {probability}"
        );
    }
}

#[test]
#[cfg_attr(miri, ignore = "too many numbers for an interpreter")]
fn the_mean_over_seeds_is_the_result_without_dropout() {
    const SEEDS: u64 = 400;
    let (name, sizes) = paths::SHORT;
    let mut case = Case::new(name, sizes);
    for name in ["output", "value gradient"] {
        case.dropout = None;
        let without = run::<f32>(&case, USUAL);
        let without = tensor(&without, name);
        let (mut mean, mut squares) = (vec![0.0; without.len()], vec![0.0; without.len()]);
        for seed in 0..SEEDS {
            case.dropout = Some(AttentionDropout {
                probability: 0.4,
                seed,
            });
            for (index, x) in tensor(&run::<f32>(&case, USUAL), name).iter().enumerate() {
                mean[index] += x / SEEDS as f64;
                squares[index] += x * x / SEEDS as f64;
            }
        }
        for ((mean, square), without) in mean.iter().zip(squares).zip(without) {
            let sigma = ((square - mean * mean).max(0.0) / SEEDS as f64).sqrt();
            // Five sigma, because there are a thousand numbers.
            assert!(
                (mean - without).abs() < 5.0 * sigma + 1e-6,
                "{mean} instead of {without}"
            );
        }
    }
}
