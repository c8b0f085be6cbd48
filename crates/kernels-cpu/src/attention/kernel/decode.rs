//! A single query and one split of the keys: vectors run along the dimensions.

use core::ops::Range;

use pulp::{Simd, WithSimd};

use crate::{
    Problem,
    attention::kernel::{
        scores::Scoring,
        screened::all_finite,
        seen::{Scores, Seen, Visibility},
        softmax::online_softmax_row,
        tile::{Panel, Queries, blocks, padded},
    },
    simd::{
        prefetch::{prefetch, rows_ahead},
        real::{MAX_LANES, Real},
    },
    threads::scratch::{LINE_NUMBERS, take},
    view::rows::{Block, Head},
};

/// Keys whose scores are held at once.
const KEYS: usize = 256;

/// The buffers of a task: scores, keys and values.
pub(crate) fn pieces(problem: &Problem) -> [usize; 3] {
    [problem.group_size(), problem.dim_qk, problem.dim_v].map(|row| row * KEYS)
}

/// Where the weighted values begin in a row of a task's results: at the start of a cache line, after the row's largest score and
/// the sum of its weights.
pub(crate) const VALUES: usize = LINE_NUMBERS;

/// The part of a task's results that belongs to one query head of the group.
pub(crate) fn group_part(problem: &Problem, in_group: usize) -> Range<usize> {
    let size = VALUES + padded(problem.dim_v);
    in_group * size..(in_group + 1) * size
}

/// One split of the keys of a key/value head, with the queries of all heads that share it.
pub struct Decode<'a, R> {
    pub(crate) scoring: &'a Scoring<'a, R>,
    /// `[group, dim_qk]`, times scale and log2(e).
    pub(crate) queries: &'a [R],
    pub(crate) k: &'a dyn Head<R>,
    pub(crate) v: &'a dyn Head<R>,
    /// The query of the group's first head.
    pub(crate) query: Queries,
    /// Two ranges, of which either may be empty.
    pub(crate) keys: [Range<usize>; 2],
    /// For each query head: the largest score, the sum of the weights relative to it, and the weighted values.
    pub(crate) partial: &'a mut [R],
    pub(crate) scratch: &'a mut [R],
}

impl<R: Real> WithSimd for Decode<'_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let problem = self.scoring.problem;
        let (dim_qk, dim_v) = (problem.dim_qk, problem.dim_v);
        let group = problem.group_size();
        let mut scratch = self.scratch;
        let [scores, key_buffer, value_buffer] =
            pieces(&problem).map(|len| take(&mut scratch, len));
        for in_group in 0..group {
            let part = &mut self.partial[group_part(&problem, in_group)];
            part.fill(R::default());
            part[0] = R::NEG_INFINITY;
        }
        let heads = self.query.head..self.query.head + group;
        let runs = self.keys.into_iter().flat_map(|keys| {
            let heads = heads.clone();
            self.scoring.runs(self.query.batch_item, heads, 0..1, keys)
        });
        // The first of the heads that share the keys reads ahead for all, where rows are not copied first.
        let [keys_ahead, values_ahead] = [self.k, self.v].map(|head| head.in_place(0).is_some());
        for keys in runs.flat_map(|run| blocks(run, KEYS)) {
            let key = self.k.block(keys.clone(), dim_qk, dim_qk, true, key_buffer);
            for (row, scores) in scores.chunks_exact_mut(KEYS).enumerate() {
                let query = &self.queries[row * dim_qk..][..dim_qk];
                let ahead = keys_ahead && row == 0;
                dots::<S, R>(simd, query, key, ahead, &mut scores[..keys.len()]);
            }
            let value = self.v.block(keys.clone(), dim_v, dim_v, true, value_buffer);
            for (in_group, scores) in scores.chunks_exact_mut(KEYS).enumerate() {
                let query = Queries {
                    head: self.query.head + in_group,
                    ..self.query
                };
                let panel = Panel {
                    queries: query,
                    columns: 1,
                    column: 0,
                };
                let part = &mut self.partial[group_part(&problem, in_group)];
                // Past the last key, weights of zero fill up the last vector.
                scores[keys.len()..].fill(R::NEG_INFINITY);
                let scores = &mut scores[..keys.len().next_multiple_of(MAX_LANES)];
                let mut of_query = Scores {
                    seen: &Seen {
                        panel,
                        keys: keys.clone(),
                        visibility: Visibility::Partial,
                    },
                    numbers: &mut *scores,
                    stride: 1,
                };
                self.scoring.apply_to_query(simd, &mut of_query);
                let (statistics, values) = part.split_at_mut(VALUES);
                // Weights of zero times values that are not finite are NaN: such keys are skipped.
                let mut skipped = [false; KEYS];
                if self.scoring.may_hide_single_keys(&query, &keys) {
                    let rows = (0..keys.len()).zip(&*scores).zip(&mut skipped);
                    for ((row, &score), skipped) in rows {
                        let value = &value.data[row * value.stride..];
                        *skipped = score == R::NEG_INFINITY
                            && !all_finite(simd, [&value[..dim_v]].into_iter(), R::from_f64(1.0));
                    }
                }
                let [maximum, sum, ..] = statistics else {
                    return;
                };
                online_softmax_row::<S, R>(simd, scores, maximum, sum, values);
                if let Some(dropout) = self.scoring.options.dropout {
                    let row = dropout.row(query.batch_item, query.head, 0);
                    for (score, key) in scores.iter_mut().zip(keys.clone()) {
                        *score = if row.keep(key) { *score } else { R::default() };
                    }
                }
                let (mut end, ahead) = (0, values_ahead && in_group == 0);
                for piece in skipped[..keys.len()].chunk_by(|a, b| a == b) {
                    let start = end;
                    end += piece.len();
                    if !piece[0] {
                        let (weights, value) = (&scores[start..end], value.after(start));
                        add_values::<S, R>(simd, weights, value, dim_v, ahead, values);
                    }
                }
            }
        }
    }
}

/// `scores[key] = query · key`. Reads `ahead` of the keys, beyond the last one too: the next keys mostly follow.
#[inline(always)]
fn dots<S: Simd, R: Real>(simd: S, query: &[R], key: Block<'_, R>, ahead: bool, scores: &mut [R]) {
    let lanes = R::lanes::<S>();
    let whole = query.len() / lanes * lanes;
    let (vectors, rest) = (R::vectors::<S>(query), &query[whole..]);
    let zero = R::splat(simd, R::default());
    let next = rows_ahead::<R>(key.stride);
    for (first, scores) in scores.chunks_mut(4).enumerate() {
        // Four keys at once, so that the sums do not wait for each other.
        let mut rows = [query; 4];
        for (index, row) in rows.iter_mut().enumerate() {
            let index = 4 * first + index.min(scores.len() - 1);
            if ahead {
                // Wrapping, because the stride of a single row may be anything.
                let at = (index + next).wrapping_mul(key.stride);
                prefetch(key.data, at, query.len());
            }
            *row = &key.data[index * key.stride..][..query.len()];
        }
        let mut sums = [zero; 4];
        let mut row_vectors = [vectors; 4];
        for (vectors, row) in row_vectors.iter_mut().zip(rows) {
            *vectors = R::vectors::<S>(row);
        }
        for (index, &query) in vectors.iter().enumerate() {
            for (sum, row) in sums.iter_mut().zip(&row_vectors) {
                *sum = R::mul_add(simd, row[index], query, *sum);
            }
        }
        for ((score, sum), row) in scores.iter_mut().zip(sums).zip(rows) {
            let products = row[whole..].iter().zip(rest).map(|(&a, &b)| a * b);
            *score = products.fold(R::reduce_sum(simd, sum), |sum, product| sum + product);
        }
    }
}

/// `sums += sum over keys of weights[key] · values[key]`
#[inline(always)]
fn add_values<S: Simd, R: Real>(
    simd: S,
    weights: &[R],
    value: Block<'_, R>,
    dim: usize,
    ahead: bool,
    sums: &mut [R],
) {
    let lanes = R::lanes::<S>();
    let mut done = 0;
    while done + lanes <= dim {
        let (columns, stride, sums) = (&value.data[done..], value.stride, &mut sums[done..]);
        let vectors = match (dim - done) / lanes {
            8.. => add_vectors::<S, R, 8>(simd, weights, columns, stride, ahead, sums),
            4.. => add_vectors::<S, R, 4>(simd, weights, columns, stride, ahead, sums),
            2.. => add_vectors::<S, R, 2>(simd, weights, columns, stride, ahead, sums),
            _ => add_vectors::<S, R, 1>(simd, weights, columns, stride, ahead, sums),
        };
        done += vectors * lanes;
    }
    for (key, &weight) in weights.iter().enumerate() {
        // Not `chunks`: the stride of a single row may be anything.
        let row = &value.data[key * value.stride..][..dim];
        for (sum, &value) in sums[done..].iter_mut().zip(&row[done..]) {
            *sum = *sum + weight * value;
        }
    }
}

/// As [`add_values`], for the first `VECTORS` vectors of the sums, which stay in registers. Reads ahead as [`dots`]. Returns `VECTORS`.
#[inline(always)]
fn add_vectors<S: Simd, R: Real, const VECTORS: usize>(
    simd: S,
    weights: &[R],
    value: &[R],
    stride: usize,
    ahead: bool,
    sums: &mut [R],
) -> usize {
    let sums = &mut R::vectors_mut::<S>(sums)[..VECTORS];
    let mut totals = [R::splat(simd, R::default()); VECTORS];
    totals.copy_from_slice(sums);
    let next = rows_ahead::<R>(stride);
    for (key, &weight) in weights.iter().enumerate() {
        if ahead {
            let at = (key + next).wrapping_mul(stride);
            prefetch(value, at, VECTORS * R::lanes::<S>());
        }
        let weight = R::splat(simd, weight);
        let row = &R::vectors::<S>(&value[key * stride..])[..VECTORS];
        for (total, &x) in totals.iter_mut().zip(row) {
            *total = R::mul_add(simd, weight, x, *total);
        }
    }
    sums.copy_from_slice(&totals);
    VECTORS
}
