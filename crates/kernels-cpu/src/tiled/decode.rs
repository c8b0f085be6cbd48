//! The forward pass of a single query, which reads every key and value once: vectors run along the dimensions, and the
//! keys of one head may be shared out among threads.

use core::{
    f64::consts::{LN_2, LOG2_E},
    ops::Range,
};

use pulp::{Simd, WithSimd};

use super::{
    Element, Execution, Inputs,
    compiled::Compiled,
    parallel::for_each,
    raw::{Product, RowsMut, Start},
    real::Real,
    rows::{Block, Head, HeadRows, store, take},
    scores::Scoring,
    tile::blocks,
    unseen::finite,
    work,
};
use crate::{Problem, math};

/// Keys whose scores are held at once.
const KEYS: usize = 256;
/// Keys of one task, at least.
const KEYS_PER_TASK: usize = 512;
/// As many tasks as this keep every core of a small machine busy.
const ENOUGH_TASKS: usize = 8;

/// Length of the scratch buffer.
pub(super) fn decode_scratch(problem: &Problem, execution: Execution) -> usize {
    tasks(problem) * per_task(problem) + workers(problem, execution) * per_worker(problem)
}

/// Tasks per key/value head: a function of the problem alone, and so are the bits of the result.
fn chunks(problem: &Problem) -> usize {
    let heads = problem.batch * problem.heads_kv;
    ENOUGH_TASKS
        .div_ceil(heads.max(1))
        .min(problem.len_kv / KEYS_PER_TASK)
        .max(1)
}

fn tasks(problem: &Problem) -> usize {
    problem.batch * problem.heads_kv * chunks(problem)
}

fn workers(problem: &Problem, execution: Execution) -> usize {
    // Memory is the bound here, not arithmetic: a byte takes as long as several operations. And who decodes has called helpers
    // for the projections just before, so they are awake.
    execution.workers(tasks(problem), 16.0 * work(problem))
}

/// Maximum, sum and weighted values of each query head of the group.
fn per_task(problem: &Problem) -> usize {
    problem.group_size() * (2 + columns(problem))
}

fn per_worker(problem: &Problem) -> usize {
    let Problem { dim_qk, dim_v, .. } = *problem;
    problem.group_size() * (dim_qk + KEYS) + KEYS * (dim_qk + dim_v) + columns(problem)
}

/// Length of a row of values, padded to whole vectors.
fn columns(problem: &Problem) -> usize {
    problem.dim_v.next_multiple_of(16)
}

/// As [`forward`](super::forward), for `len_q = 1`.
pub(super) fn decode<T: Element>(
    inputs: &Inputs<'_, T>,
    output: RowsMut<'_, T>,
    logsumexp: &mut [T::Real],
    mut scratch: &mut [T::Real],
    execution: Execution,
) {
    let problem = inputs.problem;
    let Problem {
        heads_kv, dim_qk, ..
    } = problem;
    let group = problem.group_size();
    let (chunks, per_task) = (chunks(&problem), per_task(&problem));
    let partial = take(&mut scratch, tasks(&problem) * per_task);
    for_each(
        workers(&problem, execution),
        scratch,
        per_worker(&problem),
        partial.chunks_exact_mut(per_task).enumerate(),
        |(task, partial), mut scratch| {
            let (head, chunk) = (task / chunks, task % chunks);
            let (batch_item, head_kv) = (head / heads_kv, head % heads_kv);
            let queries = take(&mut scratch, group * dim_qk);
            for (in_group, row) in queries.chunks_exact_mut(dim_qk).enumerate() {
                HeadRows::new(inputs.q, batch_item, head_kv * group + in_group).row(0, row);
                let factor = T::Real::from_f64(inputs.scale() * LOG2_E);
                row.iter_mut().for_each(|x| *x = *x * factor);
            }
            let range = inputs.mask.key_range(&problem, batch_item, 0);
            let cut = |chunk| range.start + range.len() * chunk / chunks;
            T::Real::decode(
                execution,
                Decode {
                    scoring: Scoring::new(inputs),
                    queries,
                    k: &HeadRows::new(inputs.k, batch_item, head_kv),
                    v: &HeadRows::new(inputs.v, batch_item, head_kv),
                    batch_item,
                    head_kv,
                    keys: cut(chunk)..cut(chunk + 1),
                    partial,
                    scratch,
                },
            );
        },
    );
    let heads = output.heads([problem.batch, problem.heads_q, 1], problem.dim_v);
    for (head, (mut output, logsumexp)) in heads.zip(logsumexp).enumerate() {
        let (batch_item, head) = (head / problem.heads_q, head % problem.heads_q);
        let first = (batch_item * heads_kv + problem.kv_head(head)) * chunks;
        let parts = partial[first * per_task..][..chunks * per_task].chunks_exact(per_task);
        let part = group_part(&problem, head % group);
        let rows = parts.map(|task| &task[part.clone()]);
        *logsumexp = merge::<T>(inputs, [batch_item, head], rows, output.row(0));
    }
}

/// What one query head of the group has of a task's results.
fn group_part(problem: &Problem, in_group: usize) -> Range<usize> {
    let size = 2 + columns(problem);
    in_group * size..(in_group + 1) * size
}

/// Puts the parts of one row together; returns the logsumexp.
fn merge<'a, T: Element>(
    inputs: &Inputs<'_, T>,
    [batch_item, head]: [usize; 2],
    parts: impl Iterator<Item = &'a [T::Real]> + Clone,
    output: &mut [T],
) -> T::Real {
    // A sink is a part whose value is zero.
    let sink = inputs.sink(head) * LOG2_E;
    let maximum = parts.clone().fold(sink, |maximum, part| {
        let of_part = part[0].to_f64();
        // A part of NaN must stay one.
        if of_part <= maximum { maximum } else { of_part }
    });
    // A sum of NaN is not zero: a query whose scores are all NaN has no maximum either, but has seen something.
    if maximum == f64::NEG_INFINITY && parts.clone().all(|part| part[1] == T::Real::default()) {
        output.fill(T::default());
        return T::Real::NEG_INFINITY;
    }
    let factor = |of_part: f64| math::exp2(of_part - maximum);
    let sum = parts.clone().fold(factor(sink), |sum, part| {
        sum + factor(part[0].to_f64()) * part[1].to_f64()
    });
    let kept_scale = inputs.dropout.map_or(1.0, |dropout| dropout.kept_scale());
    for (column, output) in output.iter_mut().enumerate() {
        let total = parts.clone().fold(0.0, |total, part| {
            total + factor(part[0].to_f64()) * part[2 + column].to_f64()
        });
        let mut rounded = [T::default()];
        store(&[T::Real::from_f64(total * kept_scale / sum)], &mut rounded);
        *output = rounded[0];
    }
    let logsumexp = T::Real::from_f64((maximum + math::log2(sum)) * LN_2);
    let finite = || finite(output, T::to_real);
    // Weights of zero times values that other heads of the group see are NaN if the values are.
    if Scoring::new(inputs).sees_nothing(
        [batch_item, head, 0],
        inputs.sink(head),
        logsumexp,
        finite,
    ) {
        output.fill(T::default());
    }
    logsumexp
}

/// Some keys of one key/value head, with the queries of all heads that share it.
pub struct Decode<'a, R> {
    scoring: Scoring<'a, R>,
    /// `[group, dim_qk]`, times scale and log2(e).
    queries: &'a [R],
    k: &'a dyn Head<R>,
    v: &'a dyn Head<R>,
    batch_item: usize,
    head_kv: usize,
    keys: Range<usize>,
    partial: &'a mut [R],
    scratch: &'a mut [R],
}

impl<R: Real> WithSimd for Decode<'_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let problem = self.scoring.problem;
        let Problem { dim_qk, dim_v, .. } = problem;
        let group = problem.group_size();
        let mut scratch = self.scratch;
        let scores = take(&mut scratch, group * KEYS);
        let key_buffer = take(&mut scratch, KEYS * dim_qk);
        let value_buffer = take(&mut scratch, KEYS * dim_v);
        for in_group in 0..group {
            let part = &mut self.partial[group_part(&problem, in_group)];
            part.fill(R::default());
            part[0] = R::NEG_INFINITY;
        }
        let heads = self.head_kv * group..(self.head_kv + 1) * group;
        let runs = self.scoring.runs(self.batch_item, heads, 0..1, self.keys);
        for keys in runs.flat_map(|run| blocks(run, KEYS)) {
            let key = self.k.passing(keys.clone(), dim_qk, key_buffer);
            for (row, scores) in scores.chunks_exact_mut(KEYS).enumerate() {
                let query = &self.queries[row * dim_qk..][..dim_qk];
                dots::<S, R>(simd, query, key, &mut scores[..keys.len()]);
            }
            let value = self.v.passing(keys.clone(), dim_v, value_buffer);
            for (in_group, scores) in scores.chunks_exact_mut(KEYS).enumerate() {
                let head = self.head_kv * group + in_group;
                let part = &mut self.partial[group_part(&problem, in_group)];
                // Beyond the last key, the scores fill a vector with weights of zero.
                scores[keys.len()..].fill(R::NEG_INFINITY);
                let scores = &mut scores[..keys.len().next_multiple_of(16)];
                self.scoring
                    .apply_to_query(simd, self.batch_item, head, keys.clone(), scores);
                weigh::<S, R>(simd, scores, part);
                if let Some(dropout) = self.scoring.dropout {
                    let row = dropout.row(self.batch_item, head, 0);
                    for (score, key) in scores.iter_mut().zip(keys.clone()) {
                        *score = if row.keep(key) { *score } else { R::default() };
                    }
                }
                add_values::<S, R>(simd, &scores[..keys.len()], value, dim_v, &mut part[2..]);
            }
        }
    }
}

/// `scores[key] = query · key`
#[inline(always)]
fn dots<S: Simd, R: Real>(simd: S, query: &[R], key: Block<'_, R>, scores: &mut [R]) {
    let lanes = R::lanes::<S>();
    let whole = query.len() / lanes * lanes;
    let (vectors, rest) = (R::vectors::<S>(query), &query[whole..]);
    let zero = R::splat(simd, R::default());
    for (first, scores) in scores.chunks_mut(4).enumerate() {
        // Four keys at once, so that the sums do not wait for each other.
        let mut rows = [query; 4];
        for (index, row) in rows.iter_mut().enumerate() {
            let index = 4 * first + index.min(scores.len() - 1);
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

/// Turns scores into weights relative to the largest score so far; `part` is that score, the sum of the weights, and the
/// weighted values.
#[inline(always)]
fn weigh<S: Simd, R: Real>(simd: S, scores: &mut [R], part: &mut [R]) {
    let largest = scores.iter().fold(
        part[0],
        |largest, &score| if score > largest { score } else { largest },
    );
    // As in the forward pass of many queries: infinity minus infinity would be NaN.
    let largest = if largest > R::MAX { R::MAX } else { largest };
    let least = R::default() - R::MAX;
    let reference = if largest > least { largest } else { least };
    let shrink = R::from_f64(math::exp2((part[0] - reference).to_f64()));
    part[0] = largest;
    for sum in &mut part[1..] {
        *sum = *sum * shrink;
    }
    let reference = R::splat(simd, reference);
    let mut sum = R::splat(simd, R::default());
    for score in R::vectors_mut::<S>(scores) {
        *score = R::exp2_of_negative(simd, R::minus(simd, *score, reference));
        sum = R::plus(simd, sum, *score);
    }
    part[1] = part[1] + R::reduce_sum(simd, sum);
}

/// `sums += sum over keys of weights[key] · values[key]`
#[inline(always)]
fn add_values<S: Simd, R: Real>(
    simd: S,
    weights: &[R],
    value: Block<'_, R>,
    dim: usize,
    sums: &mut [R],
) {
    let lanes = R::lanes::<S>();
    let mut done = 0;
    while done < dim {
        let product = |sums| Product {
            rows: 1,
            depth: weights.len(),
            left: weights,
            left_row: 0,
            left_step: 1,
            right: &value.data[done..],
            right_step: value.stride,
            out: sums,
            out_row: 0,
            start: Start::Keep,
        };
        let sums = &mut sums[done..];
        if done + 8 * lanes <= dim {
            product(sums).run::<S, 8>(simd);
            done += 8 * lanes;
        } else if done + 2 * lanes <= dim {
            product(sums).run::<S, 2>(simd);
            done += 2 * lanes;
        } else if done + lanes <= dim {
            product(sums).run::<S, 1>(simd);
            done += lanes;
        } else {
            for (key, &weight) in weights.iter().enumerate() {
                // Not `chunks`: the stride of a single row may be anything.
                let row = &value.data[key * value.stride..][..dim];
                for (sum, &value) in sums.iter_mut().zip(&row[done..]) {
                    *sum = *sum + weight * value;
                }
            }
            done = dim;
        }
    }
}
