//! NaN and infinity in keys that no query sees.

use alloc::{vec, vec::Vec};

use super::{
    element::Element,
    inputs::Inputs,
    kernel::{real::Real, scores::Scoring},
    parallel::{Execution, for_each},
    rows::Rows,
};
use crate::{Broadcast, Problem};

/// Keys that are examined together.
const KEYS: usize = 256;
/// Bits of what [`unseen_non_finite`] finds.
const KEY: u8 = 1;
const VALUE: u8 = 2;

/// Runs `body` on inputs without NaN or infinity in keys and values that are hidden from all queries of their batch item in
/// the heads that share them.
///
/// Kernels never touch rows that causality, windows and key lengths hide. Segments, small blocks of a table, bool tensors and
/// biases of −∞ may hide single keys inside a tile, where a weight of zero times NaN would be NaN. Only then, and only if there is such a
/// row, keys and values are copied with zeros in its place.
pub(super) fn without_nan_padding<T: Element, Out>(
    inputs: &Inputs<'_, T>,
    execution: Execution,
    body: impl FnOnce(&Inputs<'_, T>) -> Out,
) -> Out {
    let problem = inputs.problem;
    // Searching the bias for −∞ pays off only if it is smaller than keys and values: a bias by distance, or that of a
    // single query.
    let hides = |bias: &[T::Real]| bias.contains(&T::Real::NEG_INFINITY);
    let dense = |bias| problem.len_q > 1 || any_row(bias, hides);
    let bias = inputs.bias.is_some_and(dense) || inputs.distance_bias.is_some_and(hides);
    let mask = &inputs.mask;
    if mask.segments.is_none() && mask.blocks.is_none() && mask.masked.is_none() && !bias {
        return body(inputs);
    }
    let non_finite = unseen_non_finite(inputs, execution);
    let Problem {
        dim_qk,
        dim_v,
        heads_kv,
        len_kv,
        ..
    } = problem;
    let key = zeroed(inputs, &inputs.k, dim_qk, &non_finite, KEY, execution);
    let value = zeroed(inputs, &inputs.v, dim_v, &non_finite, VALUE, execution);
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
    if keys == 0 {
        // An empty tensor may have strides that lead outside it.
        return false;
    }
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

/// Which of key and value are not finite, for each row that is hidden from all queries that read it, and 0 for all other rows.
fn unseen_non_finite<T: Element>(inputs: &Inputs<'_, T>, execution: Execution) -> Vec<u8> {
    let problem = inputs.problem;
    let Problem {
        heads_kv,
        len_q,
        len_kv,
        dim_qk,
        dim_v,
        ..
    } = problem;
    let scoring = inputs.scoring();
    let mut non_finite = vec![0; problem.key_rows()];
    let pieces = non_finite.chunks_mut(len_kv.max(1)).enumerate();
    let pieces = pieces.flat_map(|(head, rows)| {
        let pieces = rows.chunks_mut(KEYS).enumerate();
        pieces.map(move |(piece, rows)| (head, piece * KEYS, rows))
    });
    let numbers = problem.key_rows() as f64 * (dim_qk + dim_v) as f64;
    for_each(
        execution.workers(usize::MAX, 2.0 * numbers),
        KEYS,
        pieces,
        |(head, first, rows), scores| {
            let (batch_item, head_kv) = (head / heads_kv, head % heads_kv);
            // Kernels do not read keys outside this range.
            let range = scoring.visible.key_range(batch_item, 0..len_q);
            let (start, end) = (range.start.max(first), range.end.min(first + rows.len()));
            if start >= end {
                return;
            }
            let keys = start..end;
            let rows = &mut rows[start - first..end - first];
            // A single query is checked for all keys at once, before they are read, because it may see most of them.
            let mut seen_by_one = [false; KEYS];
            if len_q == 1 {
                let group = problem.group_size();
                let scores = &mut scores[..keys.len()];
                for head in head_kv * group..(head_kv + 1) * group {
                    scoring.mark_seen([batch_item, head], &keys, scores, &mut seen_by_one);
                }
            }
            for ((row, key), &seen_by_one) in rows.iter_mut().zip(keys).zip(&seen_by_one) {
                if seen_by_one {
                    continue;
                }
                let finite = |rows: &Rows<'_, T>, dim: usize| {
                    T::all_finite(&rows.starting_at(batch_item, head_kv, key)[..dim])
                };
                let mut found = 0;
                found |= if finite(&inputs.k, dim_qk) { 0 } else { KEY };
                found |= if finite(&inputs.v, dim_v) { 0 } else { VALUE };
                if found != 0 && (len_q == 1 || !seen(&scoring, batch_item, head_kv, key)) {
                    *row = found;
                }
            }
        },
    );
    non_finite
}

/// A contiguous copy with zeros for the rows found, if there are any.
fn zeroed<T: Element>(
    inputs: &Inputs<'_, T>,
    rows: &Rows<'_, T>,
    dim: usize,
    non_finite: &[u8],
    which: u8,
    execution: Execution,
) -> Option<Vec<T>> {
    if non_finite.iter().all(|found| found & which == 0) {
        return None;
    }
    let Problem {
        heads_kv, len_kv, ..
    } = inputs.problem;
    let mut copy = vec![T::default(); non_finite.len() * dim];
    for_each(
        execution.workers(usize::MAX, 4.0 * copy.len() as f64),
        0,
        copy.chunks_mut(KEYS * dim)
            .zip(non_finite.chunks(KEYS))
            .enumerate(),
        |(piece, (copy, non_finite)), _: &mut [T::Real]| {
            let numbered = copy.chunks_exact_mut(dim).zip(non_finite).enumerate();
            for (index, (copy, found)) in numbered {
                let (head, key) = (
                    (piece * KEYS + index) / len_kv,
                    (piece * KEYS + index) % len_kv,
                );
                if found & which == 0 {
                    let row = rows.starting_at(head / heads_kv, head % heads_kv, key);
                    copy.copy_from_slice(&row[..dim]);
                }
            }
        },
    );
    Some(copy)
}

/// Whether any query of the batch item sees the key, in any head of the group that shares it.
fn seen<R: Real>(scoring: &Scoring<'_, R>, batch_item: usize, head_kv: usize, key: usize) -> bool {
    let problem = &scoring.visible.problem;
    let group = problem.group_size();
    (head_kv * group..(head_kv + 1) * group)
        .any(|head| (0..problem.len_q).any(|query| scoring.sees([batch_item, head, query], key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bias_of_no_keys_is_not_read_whatever_its_strides() {
        let nothing: &[f32] = &[];
        let bias = Broadcast::strided(nothing, [2, 3, 1, 0], [3, 1, 1, 1]).unwrap();
        assert!(!any_row(bias, |_| true));
    }
}
