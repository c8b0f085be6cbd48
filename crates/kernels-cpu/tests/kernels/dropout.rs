//! Dropout in the kernels: which weights are dropped, and what becomes of the others.

use burn_attn_kernels_cpu::AttentionDropout;

use crate::{
    case::{Case, tensor},
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
