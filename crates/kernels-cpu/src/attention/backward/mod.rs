//! The backward pass: gradients of query, key, value, biases and sinks, from the saved output and logsumexp.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `gradients.rs` | [`Upstream`] and [`Gradients`]: inputs and outputs |
//! | `plan.rs` | which task computes what, and where it adds its sums |
//! | `reduce.rs` | adds up the separate sums of the tasks |
//! | `mod.rs` | [`backward`] |

mod gradients;
mod plan;
mod reduce;

use crate::{
    InputError,
    attention::{
        inputs::Inputs,
        kernel::{
            backward::TileBackward,
            forward::TileForward,
            operands::Operands,
            sums::BiasGradient,
            tile::{QUERIES, Queries, padded},
        },
    },
    compiled::{Compiled, Kernel},
    options::{at_least, exactly},
    threads::{
        parallel::{Execution, for_each},
        scratch::{sum_of_pieces, take, with_scratch},
    },
    view::{element::Element, rows::Block},
};
pub use gradients::{Gradients, Upstream};
use plan::{Plan, Task};

/// The gradients of `sum(output · output_gradient) + sum(logsumexp · logsumexp_gradient)`.
///
/// Same input, same bits: every sum has an order that depends on the problem alone, not on threads.
///
/// # Errors
/// An input, an option or a buffer does not fit the problem.
///
/// # Cost
/// Five products where the forward pass has two: `2 · batch · heads_q · len_q · len_kv · (3 · dim_qk + 2 · dim_v)`
/// operations over visible pairs. In half precision, gradients of the distance bias and of captured numbers take the forward pass once more: with a
/// rounded output they would be inexact. All gradients of such a call come from the exact output. Memory grows with `len_q + len_kv`, not with their
/// product. Only the gradient of a dense bias takes additional copies of that bias: up to three, or one per task if it has one row for all queries.
///
/// # Source
/// Dao, *FlashAttention-2* (2023), algorithm 2, but with the queries in the outer loop and key/value heads as tasks, so that the
/// query gradient needs no atomic additions.
pub fn backward<T: Element>(
    inputs: &Inputs<'_, T>,
    upstream: &Upstream<'_, T>,
    gradients: Gradients<'_, T>,
    execution: Execution,
) -> Result<(), InputError> {
    inputs.validate()?;
    let p = &inputs.problem;
    for (name, rows) in [
        ("output", &upstream.output),
        ("gradient of the output", &upstream.output_gradient),
    ] {
        let extent = rows.extent(p.query_sizes(), p.dim_v);
        at_least(name, rows.available(), extent, p)?;
    }
    let rows = p.query_rows();
    exactly("logsumexp", upstream.logsumexp.len(), rows, p)?;
    if let Some(gradient) = upstream.logsumexp_gradient {
        exactly("gradient of the logsumexp", gradient.len(), rows, p)?;
    }
    gradients.validate(inputs)?;
    if rows == 0 {
        gradients.clear(p);
        return Ok(());
    }
    let plan = Plan::new(inputs, &gradients);
    run(&plan, inputs, upstream, gradients, execution);
    Ok(())
}

fn run<T: Element>(
    plan: &Plan,
    inputs: &Inputs<'_, T>,
    upstream: &Upstream<'_, T>,
    mut gradients: Gradients<'_, T>,
    execution: Execution,
) {
    let partial = plan.tasks() * plan.partial_per_task().iter().sum::<usize>();
    let slabs = plan.slabs.in_scratch();
    with_scratch(sum_of_pieces([partial, slabs]), |mut scratch| {
        let partial = take(&mut scratch, partial);
        let slabs = take(&mut scratch, slabs);
        let mut slots = plan.slots(&mut gradients, partial, slabs);
        let is_causal = inputs.options.mask.by_position.causal.is_some();
        if is_causal || inputs.visible_function.is_some() {
            // Under a causal mask or function the last tiles have the most work: they go first, so that no thread waits for them at the end.
            slots.reverse();
        }
        for_each(
            execution.workers(plan.slabs.slots(), 2.5 * plan.problem.operations()),
            plan.per_worker(),
            slots.into_iter(),
            |slot, scratch| {
                slot.bias.fill(T::Real::default());
                for task in slot.tasks {
                    run_task(plan, inputs, upstream, task, slot.bias, scratch, execution);
                }
            },
        );
        plan.reduce(inputs, &mut gradients, partial, slabs, execution);
    });
}

/// Runs some tiles of the query heads that share one key/value head.
fn run_task<T: Element>(
    plan: &Plan,
    inputs: &Inputs<'_, T>,
    upstream: &Upstream<'_, T>,
    task: Task<'_, T>,
    bias: &mut [T::Real],
    mut scratch: &mut [T::Real],
    execution: Execution,
) {
    let problem = inputs.problem;
    let scoring = inputs.scoring();
    let (batch_item, head_kv) = (task.batch_item, task.head_kv);
    let k = inputs.k.head(batch_item, head_kv);
    let v = inputs.v.head(batch_item, head_kv);
    let [key_elements, value_elements] = plan.sums_per_head;
    let (key_gradient, value_gradient) = match task.partial {
        Some(partial) => partial.split_at_mut(key_elements),
        None => take(&mut scratch, key_elements + value_elements).split_at_mut(key_elements),
    };
    for sums in [
        &mut *key_gradient,
        &mut *value_gradient,
        &mut *task.sinks,
        &mut *task.distance,
        &mut *task.captured,
    ] {
        sums.fill(T::Real::default());
    }
    let mut query_gradients = task.q.into_iter();
    let per_head = plan.distances;
    for tile in task.tiles {
        let (in_group, query) = plan.tile(tile);
        let head = head_kv * problem.group_size() + in_group;
        let rows = problem.len_q.min(query + QUERIES) - query;
        let row = problem.query_row(batch_item, head, query);
        let bias_gradient = plan.bias_strides.map(|strides| {
            let [_, of_heads, of_queries, of_keys] = strides;
            BiasGradient {
                sums: &mut bias[in_group * of_heads..],
                strides: [of_queries, of_keys],
            }
        });
        let mut write = query_gradients.next().map(|mut gradient| {
            move |query, row: &[T::Real]| T::from_reals(row, gradient.row(query))
        });
        let q = inputs.q.head(batch_item, head);
        let operands = Operands {
            scoring: &scoring,
            q: &q,
            k: &k,
            v: &v,
            queries: Queries {
                batch_item,
                head,
                first: query,
                count: rows,
            },
        };
        let saved = upstream.output.head(batch_item, head).after(query);
        let mut scratch = &mut *scratch;
        let exact = plan.recomputes_output.then(|| {
            let pieces = plan.output_pieces(rows);
            let [numbers, logsumexp] = pieces.map(|len| take(&mut scratch, len));
            let dim = problem.dim_v;
            T::Real::run(
                Kernel::Forward(TileForward {
                    operands,
                    logsumexp,
                    output: &mut |at, row| numbers[at * dim..][..dim].copy_from_slice(row),
                    scratch: &mut *scratch,
                }),
                execution,
            );
            Block {
                data: &*numbers,
                stride: dim,
            }
        });
        T::Real::run(
            Kernel::Backward(TileBackward {
                operands,
                output: exact.as_ref().map_or(&saved as _, |exact| exact as _),
                output_gradient: &upstream.output_gradient.head(batch_item, head),
                logsumexp: &upstream.logsumexp[row..row + rows],
                logsumexp_gradient: upstream.logsumexp_gradient.map(|all| &all[row..row + rows]),
                key_gradient: &mut *key_gradient,
                value_gradient: &mut *value_gradient,
                distance_gradient: &mut task.distance
                    [in_group * per_head..(in_group + 1) * per_head],
                function_gradient: &mut task.captured
                    [in_group * plan.captured..(in_group + 1) * plan.captured],
                bias_gradient,
                sink_gradient: task.sinks.get_mut(in_group),
                query_gradient: write.as_mut().map(|write| write as _),
                scratch: &mut *scratch,
            }),
            execution,
        );
    }
    for (sums, out, dim) in [
        (&*key_gradient, task.k, problem.dim_qk),
        (&*value_gradient, task.v, problem.dim_v),
    ] {
        if let Some(mut out) = out {
            for (row, sums) in sums.chunks_exact(padded(dim)).enumerate() {
                T::from_reals(&sums[..dim], out.row(row));
            }
        }
    }
}
