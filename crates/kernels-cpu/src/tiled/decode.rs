//! The forward pass of a single query, which reads every key and value once: the keys of one head may be shared out among
//! threads.

use core::f64::consts::{LN_2, LOG2_E};

use super::{
    compiled::Compiled,
    element::Element,
    head_rows::{HeadRows, store},
    inputs::Inputs,
    kernel::{
        one_query::{OneQuery, columns, group_part, query_scratch},
        real::{Real, finite},
    },
    parallel::{Execution, for_each},
    rows::Head,
    rows_mut::RowsMut,
    scratch::take,
};
use crate::{Problem, math};

/// Keys of one task, at least.
const KEYS_PER_TASK: usize = 512;
/// As many tasks as this keep every core of a small machine busy.
const ENOUGH_TASKS: usize = 8;

/// Length of the scratch buffer.
pub(super) fn decode_scratch(problem: &Problem, execution: Execution) -> usize {
    tasks(problem) * per_task(problem) + workers(problem, execution) * query_scratch(problem)
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
    execution.workers(tasks(problem), 16.0 * problem.operations())
}

/// Maximum, sum and weighted values of each query head of the group.
fn per_task(problem: &Problem) -> usize {
    problem.group_size() * (2 + columns(problem))
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
        query_scratch(&problem),
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
            T::Real::one_query(
                execution,
                OneQuery {
                    scoring: inputs.scoring(),
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
    if inputs
        .scoring()
        .sees_nothing([batch_item, head, 0], inputs.sink(head), logsumexp, finite)
    {
        output.fill(T::default());
    }
    logsumexp
}
