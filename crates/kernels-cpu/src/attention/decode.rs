//! The forward pass of a single query, which reads every key and value once. The keys of one head may be divided among
//! threads.

use core::f64::consts::LOG2_E;

use pulp::Scalar;

use crate::{
    Problem,
    attention::{
        inputs::Inputs,
        kernel::{
            decode::{Decode, VALUES, group_part, pieces},
            scores::Scoring,
            screened::all_finite,
            softmax::finish,
            tile::{Queries, prescale, tasks_per_head},
        },
    },
    compiled::{Compiled, Kernel},
    math,
    simd::real::Real,
    threads::{
        parallel::{Execution, for_each},
        scratch::{sum_of_pieces, take, with_scratch},
    },
    view::{element::Element, rows::Head, rows_mut::RowsMut},
};

/// Keys of one split, at least, hidden ones included.
const KEYS_PER_SPLIT: usize = 512;

/// Number of splits of the keys of a key/value head (Flash-Decoding). It depends only on the problem, and so do the bits of the result.
fn splits(problem: &Problem) -> usize {
    let heads = problem.batch * problem.heads_kv;
    tasks_per_head(heads, problem.len_kv / KEYS_PER_SPLIT)
}

fn tasks(problem: &Problem) -> usize {
    problem.batch * problem.heads_kv * splits(problem)
}

/// Length of the results of a task, for all query heads of the group.
fn per_task(problem: &Problem) -> usize {
    problem.group_size() * group_part(problem, 0).len()
}

/// As [`forward`](super::forward::forward), for `len_q = 1`.
pub(crate) fn decode<T: Element>(
    inputs: &Inputs<'_, T>,
    output: RowsMut<'_, T>,
    logsumexp: &mut [T::Real],
    execution: Execution,
) {
    let problem = inputs.problem;
    with_scratch(tasks(&problem) * per_task(&problem), |partial| {
        run_tasks(inputs, partial, execution);
        merge(inputs, partial, output, logsumexp, execution);
    });
}

fn run_tasks<T: Element>(inputs: &Inputs<'_, T>, partial: &mut [T::Real], execution: Execution) {
    let problem = inputs.problem;
    let (heads_kv, dim_qk, group) = (problem.heads_kv, problem.dim_qk, problem.group_size());
    let (splits, scoring) = (splits(&problem), inputs.scoring());
    for_each(
        // Decoding is bound by memory: an operation counts 16-fold. The helpers are usually still awake after the preceding projection.
        execution.workers(tasks(&problem), 16.0 * problem.operations()),
        sum_of_pieces([group * dim_qk]) + sum_of_pieces(pieces(&problem)),
        partial.chunks_exact_mut(per_task(&problem)).enumerate(),
        |(task, partial), mut scratch| {
            let (head, split) = (task / splits, task % splits);
            let (batch_item, head_kv) = (head / heads_kv, head % heads_kv);
            let queries = take(&mut scratch, group * dim_qk);
            for (in_group, row) in queries.chunks_exact_mut(dim_qk).enumerate() {
                let head = head_kv * group + in_group;
                let query = inputs.q.head(batch_item, head);
                query.copy(0..1, dim_qk, dim_qk, row);
            }
            let factor = T::Real::from_f64(prescale(scoring.scale(), queries) * LOG2_E);
            queries.iter_mut().for_each(|x| *x = *x * factor);
            let (first, range) = inputs.options.mask.seen_keys(&problem, batch_item, 0);
            let range = range.start.max(first).min(range.end)..range.end;
            let all = first + range.len();
            // The first keys and the range are cut as one sequence.
            let cut = [split, split + 1].map(|split| all * split / splits);
            let of_first = cut.map(|cut| cut.min(first));
            let of_range = cut.map(|cut| range.start + cut.saturating_sub(first));
            T::Real::run(
                Kernel::Decode(Decode {
                    scoring: &scoring,
                    queries,
                    k: &inputs.k.head(batch_item, head_kv),
                    v: &inputs.v.head(batch_item, head_kv),
                    query: Queries {
                        batch_item,
                        head: head_kv * group,
                        first: 0,
                        count: 1,
                    },
                    keys: [of_first, of_range].map(|[start, end]| start..end),
                    partial,
                    scratch,
                }),
                execution,
            );
        },
    );
}

/// Merges the parts of all rows.
fn merge<T: Element>(
    inputs: &Inputs<'_, T>,
    partial: &[T::Real],
    output: RowsMut<'_, T>,
    logsumexp: &mut [T::Real],
    execution: Execution,
) {
    let problem = inputs.problem;
    let (batch, heads_q, dim_v) = (problem.batch, problem.heads_q, problem.dim_v);
    let (splits, per_task) = (splits(&problem), per_task(&problem));
    let scoring = inputs.scoring();
    let heads = output.heads(problem.query_sizes(), dim_v).zip(logsumexp);
    let numbers = batch * heads_q * splits * dim_v;
    for_each(
        execution.workers(batch * heads_q, 8.0 * numbers as f64),
        dim_v,
        heads.enumerate(),
        |(head, (mut output, logsumexp)), row| {
            let (batch_item, head) = (head / heads_q, head % heads_q);
            let first = (batch_item * problem.heads_kv + problem.kv_head(head)) * splits;
            let parts = partial[first * per_task..][..splits * per_task].chunks_exact(per_task);
            let part = group_part(&problem, head % problem.group_size());
            let parts = parts.map(|task| &task[part.clone()]);
            *logsumexp = merge_row(&scoring, [batch_item, head], parts, row);
            T::from_reals(row, output.row(0));
        },
    );
}

/// Merges the parts of one row; returns the logsumexp.
fn merge_row<'a, R: Real>(
    scoring: &Scoring<'_, R>,
    [batch_item, head]: [usize; 2],
    parts: impl Iterator<Item = &'a [R]> + Clone,
    row: &mut [R],
) -> R {
    let maximum = parts.clone().fold(f64::NEG_INFINITY, |maximum, part| {
        let of_part = part[0].to_f64();
        // NaN in a part must not be skipped.
        if of_part <= maximum { maximum } else { of_part }
    });
    // If every part is hidden, the maximum is −∞, and the difference would be NaN.
    let rescale = |of_part: R| match of_part.to_f64() {
        of_part if of_part == maximum => 1.0,
        of_part => math::exp2(of_part - maximum),
    };
    let sums = parts
        .clone()
        .map(|part| rescale(part[0]) * part[1].to_f64());
    let (logsumexp, share) = finish(maximum, sums.sum(), scoring.sink(head));
    let logsumexp = R::from_f64(logsumexp);
    let kept_scale = scoring.kept_scale();
    row.fill(R::default());
    for part in parts {
        let factor = R::from_f64(rescale(part[0]) * kept_scale * share);
        for (total, &value) in row.iter_mut().zip(&part[VALUES..]) {
            *total = *total + factor * value;
        }
    }
    let finite = || all_finite(Scalar::new(), [&*row].into_iter(), R::from_f64(1.0));
    // A weight of zero times a value of NaN, which another head of the group may see, is NaN.
    let at = [batch_item, head, 0];
    if scoring.fully_masked(at, logsumexp, finite) {
        row.fill(R::default());
    }
    logsumexp
}
