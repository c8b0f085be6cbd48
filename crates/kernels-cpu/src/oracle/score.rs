//! One score.

use super::Inputs;
use crate::{Options, Problem, math};

/// Batch item, query head, query and key of a score.
pub(super) type At = [usize; 4];

/// A score as it enters the softmax, and its derivative by the scaled dot product.
#[derive(Clone, Copy)]
pub(super) struct Score {
    pub value: f64,
    /// `d value / d (scale * dot)`: 1 without softcap, else `1 - tanh²`.
    pub slope: f64,
    /// How many tokens the key is after the position of the query.
    pub distance: isize,
}

/// The score of one pair, or `None` if the key is hidden.
///
/// A hidden key's numbers are not read at all, so that NaN in them cannot spread.
pub(super) fn score(problem: &Problem, inputs: &Inputs<'_>, at: At) -> Option<Score> {
    let [batch_item, head, query, key] = at;
    let Options { mask, bias, .. } = inputs.options;
    if !mask.visible(problem, batch_item, head, query, key) {
        return None;
    }
    let distance = key as isize - mask.position(problem, batch_item, query);
    let dense = bias.map_or(0.0, |bias| bias.get(batch_item, head, query, key));
    let alibi = inputs.alibi;
    let alibi = alibi.map_or(0.0, |slopes| -slopes[head] * distance.abs() as f64);
    let relative = inputs.relative.map_or(0.0, |(table, buckets)| {
        table[buckets.bucket(distance) * problem.heads_q + head]
    });
    let bias = dense + alibi + relative;
    if bias == f64::NEG_INFINITY {
        return None;
    }

    let dim = problem.dim_qk;
    let q_row = problem.query_row(batch_item, head, query) * dim;
    let k_row = problem.key_row(batch_item, problem.kv_head(head), key) * dim;
    let mut dot = 0.0;
    for d in 0..dim {
        dot += inputs.q[q_row + d] * inputs.k[k_row + d];
    }
    let scaled = inputs.options.scale(problem) * dot;
    let (capped, slope) = match inputs.options.softcap {
        Some(softcap) => {
            let ratio = scaled / softcap;
            // 1 − tanh²(ratio), which would cancel where the tanh is near 1.
            let e = math::exp(-2.0 * ratio.abs());
            let slope = 4.0 * e / ((1.0 + e) * (1.0 + e));
            // A score far below the softcap is itself. Its ratio to the softcap may be subnormal, or 0.
            let capped = match ratio * ratio < f64::EPSILON {
                true => scaled,
                false => softcap * math::tanh(ratio),
            };
            (capped, slope)
        }
        None => (scaled, 1.0),
    };
    Some(Score {
        value: capped + bias,
        slope,
        distance,
    })
}

/// The factor that dropout puts on a weight: 0, or `1 / (1 - p)`.
pub(super) fn dropout_factor(inputs: &Inputs<'_>, [batch_item, head, query, key]: At) -> f64 {
    match inputs.options.dropout {
        Some(dropout) if dropout.keep(batch_item, head, query, key) => dropout.kept_scale(),
        Some(_) => 0.0,
        None => 1.0,
    }
}
