//! The forward pass.

use alloc::{vec, vec::Vec};

use super::Inputs;
use super::score::{dropout_factor, score};
use crate::{InputError, Problem, math};

/// What [`forward`] returns.
///
/// # Shapes
/// - output `[batch, heads_q, len_q, dim_v]`
/// - logsumexp `[batch, heads_q, len_q]`
/// - weights `[batch, heads_q, len_q, len_kv]`
#[derive(Clone, Debug, PartialEq)]
pub struct Forward {
    /// The weighted sums of the values.
    pub output: Vec<f64>,
    /// The logarithm of the softmax denominator, sink included; −∞ if there is neither a visible key nor a sink.
    pub logsumexp: Vec<f64>,
    /// The weights before dropout, 0 for hidden keys. A row adds up to 1, to less with a sink, to 0 if hidden.
    pub weights: Vec<f64>,
}

/// Attention, as the [contract](crate) states it.
///
/// # Shapes
/// See [`Inputs`] and [`Forward`].
///
/// # Errors
/// The inputs do not fit the problem or each other.
///
/// # Cost
/// `2 · batch · heads_q · len_q · len_kv · (dim_qk + dim_v)` operations, O(`batch · heads_q · len_q · len_kv`) memory.
///
/// # Source
/// Vaswani et al. (2017), equation 1, with the extensions of the [contract](crate).
/// PyTorch: `torch.nn.functional.scaled_dot_product_attention(q, k, v, ~masked)`.
pub fn forward(problem: &Problem, inputs: &Inputs<'_>) -> Result<Forward, InputError> {
    inputs.validate(problem)?;
    let (len_kv, dim_v) = (problem.len_kv, problem.dim_v);
    let mut output = vec![0.0; problem.output_elements()];
    let mut logsumexps = vec![f64::NEG_INFINITY; problem.query_rows()];
    let mut weights = vec![0.0; problem.score_elements()];

    for batch_item in 0..problem.batch {
        for head in 0..problem.heads_q {
            for query in 0..problem.len_q {
                let row = problem.query_row(batch_item, head, query);
                let at = |key| [batch_item, head, query, key];
                let scores: Vec<Option<f64>> = (0..len_kv)
                    .map(|key| score(problem, inputs, at(key)).map(|score| score.value))
                    .collect();
                let sink = inputs.options.sinks.map(|sinks| sinks[head]);

                let mut terms: Vec<f64> = scores.iter().flatten().copied().collect();
                terms.extend(sink);
                let logsumexp = logsumexp(&terms);
                logsumexps[row] = logsumexp;

                for key in 0..len_kv {
                    let Some(score) = scores[key] else { continue };
                    // If all scores of a row are −∞, the difference is NaN.
                    let weight = match score {
                        f64::NEG_INFINITY => 0.0,
                        score => math::exp(score - logsumexp),
                    };
                    weights[row * len_kv + key] = weight;
                    let factor = dropout_factor(inputs, at(key));
                    if factor == 0.0 {
                        continue;
                    }
                    let v_row = problem.key_row(batch_item, problem.kv_head(head), key) * dim_v;
                    for d in 0..dim_v {
                        output[row * dim_v + d] += factor * weight * inputs.v[v_row + d];
                    }
                }
            }
        }
    }
    Ok(Forward {
        output,
        logsumexp: logsumexps,
        weights,
    })
}

/// `log(sum(exp(terms)))`, −∞ for no terms; the largest term is subtracted first, so that the sum stays in range.
fn logsumexp(terms: &[f64]) -> f64 {
    // Testing every term, not the maximum: `f64::max` skips NaN, and a row of NaN must not pass for a hidden one.
    if terms.iter().all(|&term| term == f64::NEG_INFINITY) {
        return f64::NEG_INFINITY;
    }
    let largest = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = terms.iter().map(|term| math::exp(term - largest)).sum();
    largest + math::ln(sum)
}
