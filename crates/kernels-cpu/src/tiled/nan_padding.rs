//! NaN and infinity in keys that nobody sees.

use alloc::vec::Vec;

use super::{
    element::Element,
    inputs::Inputs,
    kernel::{
        real::{Real, finite},
        scores::Scoring,
    },
    rows::Rows,
};
use crate::{Broadcast, Problem};

/// Runs `body` on inputs in which no key or value is NaN or infinite that is hidden from all queries of its batch item and of
/// the heads that share it.
///
/// Causality, windows and key lengths never let a kernel touch such rows. Segments, small blocks of a table, bool tensors and
/// biases of −∞ may hide single keys inside a tile, where a weight of zero times NaN would be NaN. Only then, and only if there is such a row,
/// keys and values are copied with zeros in its place.
pub(super) fn without_nan_padding<T: Element, Out>(
    inputs: &Inputs<'_, T>,
    body: impl FnOnce(&Inputs<'_, T>) -> Out,
) -> Out {
    let problem = inputs.problem;
    // To look for one that hides is worth it where the bias is shorter than keys and values: one of distances, or of a
    // single query.
    let hides = |bias: &[T::Real]| bias.contains(&T::Real::NEG_INFINITY);
    let dense = |bias| problem.len_q > 1 || any_row(bias, hides);
    let bias = inputs.bias.is_some_and(dense) || inputs.distance_bias.is_some_and(hides);
    let mask = &inputs.mask;
    if mask.segments.is_none() && mask.blocks.is_none() && mask.masked.is_none() && !bias {
        return body(inputs);
    }
    let Problem {
        dim_qk,
        dim_v,
        heads_kv,
        len_kv,
        ..
    } = problem;
    let key = erase(inputs, &inputs.k, dim_qk);
    let value = erase(inputs, &inputs.v, dim_v);
    let mut inputs = *inputs;
    if let Some(key) = &key {
        inputs.k = Rows::contiguous(key, heads_kv, len_kv, dim_qk);
    }
    if let Some(value) = &value {
        inputs.v = Rows::contiguous(value, heads_kv, len_kv, dim_v);
    }
    body(&inputs)
}

/// Whether `found` is true of any row of the bias, or piece of one.
fn any_row<R>(bias: Broadcast<'_, R>, found: impl Fn(&[R]) -> bool) -> bool {
    let [batch, heads, queries, keys] = bias.shape();
    let [_, _, _, of_keys] = bias.strides();
    let row = |batch_item, head, query| {
        let row = &bias.data()[bias.index(batch_item, head, query, 0)..];
        match of_keys {
            // One number for all keys.
            0 => found(&row[..keys.min(1)]),
            1 => found(&row[..keys]),
            _ => row
                .iter()
                .step_by(of_keys)
                .take(keys)
                .any(|number| found(core::slice::from_ref(number))),
        }
    };
    (0..batch).any(|b| (0..heads).any(|head| (0..queries).any(|query| row(b, head, query))))
}

/// A contiguous copy with zeros for unseen rows that are not finite, if there are any.
fn erase<T: Element>(inputs: &Inputs<'_, T>, rows: &Rows<'_, T>, dim: usize) -> Option<Vec<T>> {
    let problem = &inputs.problem;
    let scoring = inputs.scoring();
    let mut unseen = Vec::new();
    for batch_item in 0..problem.batch {
        for head in 0..problem.heads_kv {
            for key in 0..problem.len_kv {
                let row = &rows.starting_at(batch_item, head, key)[..dim];
                if !finite(row, T::to_real) && !seen(&scoring, batch_item, head, key) {
                    unseen.push(problem.key_row(batch_item, head, key));
                }
            }
        }
    }
    if unseen.is_empty() {
        return None;
    }
    let mut copy = Vec::with_capacity(problem.key_rows() * dim);
    for batch_item in 0..problem.batch {
        for head in 0..problem.heads_kv {
            for key in 0..problem.len_kv {
                copy.extend_from_slice(&rows.starting_at(batch_item, head, key)[..dim]);
            }
        }
    }
    for row in unseen {
        copy[row * dim..][..dim].fill(T::default());
    }
    Some(copy)
}

/// Whether any query of the batch item sees the key, in any head of the group that shares it.
fn seen<R: Real>(scoring: &Scoring<'_, R>, batch_item: usize, head_kv: usize, key: usize) -> bool {
    let problem = &scoring.visible.problem;
    let group = problem.group_size();
    (head_kv * group..(head_kv + 1) * group)
        .any(|head| (0..problem.len_q).any(|query| scoring.sees([batch_item, head, query], key)))
}
