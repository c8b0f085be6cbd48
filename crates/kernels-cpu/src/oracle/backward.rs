//! The backward pass.

use alloc::{vec, vec::Vec};

use super::Inputs;
use super::forward::forward;
use super::score::{dropout_factor, score};
use crate::{InputError, Problem, math, options::exactly};

/// What [`backward`] returns: one gradient per differentiable input, in the shape of the input.
///
/// # Shapes
/// - q `[batch, heads_q, len_q, dim_qk]`
/// - k `[batch, heads_kv, len_kv, dim_qk]`
/// - v `[batch, heads_kv, len_kv, dim_v]`
/// - bias: the layout of its buffer, summed over the dimensions it broadcast
/// - alibi `[heads_q]`
/// - relative `[buckets, heads_q]`
/// - sinks `[heads_q]`
#[derive(Clone, Debug, PartialEq)]
pub struct Gradients {
    /// Gradient of the queries.
    pub q: Vec<f64>,
    /// Gradient of the keys, summed over the query heads that share them.
    pub k: Vec<f64>,
    /// Gradient of the values, summed over the query heads that share them.
    pub v: Vec<f64>,
    /// Gradient of the bias, if there is one; 0 where the bias is −∞.
    pub bias: Option<Vec<f64>>,
    /// Gradient of the ALiBi slopes, if there are any.
    pub alibi: Option<Vec<f64>>,
    /// Gradient of the table of the relative bias, if there is one; 0 where it is −∞.
    pub relative: Option<Vec<f64>>,
    /// Gradient of the sinks, if there are any.
    pub sinks: Option<Vec<f64>>,
}

/// The gradients of `sum(output · output_gradient) + sum(logsumexp · logsumexp_gradient)`.
///
/// For one row, with weights `w[j]`, dropout factors `z[j]` (0 or `1 / (1 - p)`) and incoming gradients `do`, `dl`:
///
/// ```text
/// dw[j]     = z[j] * dot(do, v[j])
/// mean      = sum_j w[j] * dw[j]                      equals dot(do, o), which is how kernels compute it
/// ds[j]     = w[j] * (dw[j] - mean + dl)              the gradient of the score, and of the bias
/// dslope   += ds[j] * -|j - position|                 of ALiBi
/// dtable   += ds[j]                                   of the relative bias, in the bucket of j - position
/// dsink     = w_sink * (dl - mean)                    w_sink = exp(sink - logsumexp)
/// draw[j]   = ds[j] * (1 - tanh²) * scale             of the dot product, through softcap and scale
/// dq        = sum_j draw[j] * k[j]
/// dk[j]    += draw[j] * q
/// dv[j]    += z[j] * w[j] * do
/// ```
///
/// Hidden pairs are skipped, not multiplied by zero.
///
/// # Shapes
/// - output_gradient `[batch, heads_q, len_q, dim_v]`
/// - logsumexp_gradient `[batch, heads_q, len_q]`, zero if absent
///
/// # Errors
/// The inputs or the gradients do not fit the problem or each other.
///
/// # Cost
/// `4 · batch · heads_q · len_q · len_kv · (2 · dim_qk + dim_v)` operations beyond the forward, which is run again;
/// O(`batch · heads_q · len_q · len_kv`) memory.
///
/// # Source
/// Dao et al., *FlashAttention* (2022), appendix B.4, extended by softcap, biases, sinks and the logsumexp's gradient.
/// PyTorch: `torch.autograd.grad` of `scaled_dot_product_attention`.
pub fn backward(
    problem: &Problem,
    inputs: &Inputs<'_>,
    output_gradient: &[f64],
    logsumexp_gradient: Option<&[f64]>,
) -> Result<Gradients, InputError> {
    let forward = forward(problem, inputs)?;
    let (elements, rows) = (problem.output_elements(), problem.query_rows());
    exactly("output_gradient", output_gradient.len(), elements, problem)?;
    if let Some(gradient) = logsumexp_gradient {
        exactly("logsumexp_gradient", gradient.len(), rows, problem)?;
    }
    let (len_kv, dim_qk, dim_v) = (problem.len_kv, problem.dim_qk, problem.dim_v);
    let options = &inputs.options;
    let scale = options.scale(problem);
    let mut gradients = Gradients {
        q: vec![0.0; problem.query_elements()],
        k: vec![0.0; problem.key_elements()],
        v: vec![0.0; problem.value_elements()],
        bias: options.bias.map(|bias| vec![0.0; bias.data().len()]),
        alibi: inputs.alibi.map(|slopes| vec![0.0; slopes.len()]),
        relative: inputs.relative.map(|(table, _)| vec![0.0; table.len()]),
        sinks: options.sinks.map(|sinks| vec![0.0; sinks.len()]),
    };

    for batch_item in 0..problem.batch {
        for head in 0..problem.heads_q {
            for query in 0..problem.len_q {
                let row = problem.query_row(batch_item, head, query);
                let key_row = |key| problem.key_row(batch_item, problem.kv_head(head), key);
                let at = |key| [batch_item, head, query, key];
                let (q_row, o_row) = (row * dim_qk, row * dim_v);
                let logsumexp = forward.logsumexp[row];
                let d_logsumexp = logsumexp_gradient.map_or(0.0, |gradient| gradient[row]);

                // First the mean over all keys, because the gradient of every key needs the mean.
                let mut d_weights = vec![0.0; len_kv];
                let mut mean = 0.0;
                for (key, d_weight) in d_weights.iter_mut().enumerate() {
                    let factor = dropout_factor(inputs, at(key));
                    if factor == 0.0 || score(problem, inputs, at(key)).is_none() {
                        continue;
                    }
                    let weight = forward.weights[row * len_kv + key];
                    let v_row = key_row(key) * dim_v;
                    for d in 0..dim_v {
                        let d_output = output_gradient[o_row + d];
                        *d_weight += factor * d_output * inputs.v[v_row + d];
                        gradients.v[v_row + d] += factor * weight * d_output;
                    }
                    mean += weight * *d_weight;
                }

                for key in 0..len_kv {
                    let Some(score) = score(problem, inputs, at(key)) else {
                        continue;
                    };
                    let weight = forward.weights[row * len_kv + key];
                    let d_score = weight * (d_weights[key] - mean + d_logsumexp);
                    if let (Some(bias), Some(gradient)) = (&options.bias, &mut gradients.bias) {
                        gradient[bias.index(batch_item, head, query, key)] += d_score;
                    }
                    if let Some(gradient) = &mut gradients.alibi {
                        gradient[head] -= d_score * score.distance.abs() as f64;
                    }
                    if let (Some((_, buckets)), Some(gradient)) =
                        (inputs.relative, &mut gradients.relative)
                    {
                        let bucket = buckets.bucket(score.distance);
                        gradient[bucket * problem.heads_q + head] += d_score;
                    }
                    let d_dot = d_score * score.slope * scale;
                    let k_row = key_row(key) * dim_qk;
                    for d in 0..dim_qk {
                        gradients.q[q_row + d] += d_dot * inputs.k[k_row + d];
                        gradients.k[k_row + d] += d_dot * inputs.q[q_row + d];
                    }
                }

                if let (Some(sinks), Some(gradient)) = (options.sinks, &mut gradients.sinks) {
                    // A sink of −∞ gets no gradient: the incoming gradient may be NaN in a row without a visible key.
                    if sinks[head] != f64::NEG_INFINITY {
                        let weight = math::exp(sinks[head] - logsumexp);
                        gradient[head] += weight * (d_logsumexp - mean);
                    }
                }
            }
        }
    }
    Ok(gradients)
}
