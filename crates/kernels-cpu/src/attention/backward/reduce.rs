//! Adds up the separate sums of the tasks.

use crate::{
    attention::{
        backward::{
            gradients::{Gradients, heads},
            plan::Plan,
        },
        function::Captured,
        inputs::Inputs,
        kernel::tile::padded,
    },
    threads::parallel::{Execution, TASK, add, add_up, for_each},
    view::element::Element,
};

/// Rows of keys that are added up at once.
const REDUCED_ROWS: usize = 32;

impl Plan {
    /// Adds up the separate sums of the tasks, in their order.
    pub(crate) fn reduce<T: Element>(
        &self,
        inputs: &Inputs<'_, T>,
        gradients: &mut Gradients<'_, T>,
        partial: &[T::Real],
        slabs: &[T::Real],
        execution: Execution,
    ) {
        let p = &self.problem;
        let group = p.group_size();
        let [of_sums, of_sinks, of_distances, of_captured] = self.partial_per_task();
        let per_task = of_sums + of_sinks + of_distances + of_captured;
        // A number that comes from memory costs as much as several operations.
        let workers = |numbers: usize| execution.workers(usize::MAX, 4.0 * numbers as f64);
        if self.chunks > 1 {
            let [of_keys, of_values] = self.sums_per_head;
            for (rows, dim, skip, sums) in [
                (gradients.k.take(), p.dim_qk, 0, of_keys),
                (gradients.v.take(), p.dim_v, of_keys, of_values),
            ] {
                let heads = heads(rows, p.key_sizes(), dim).enumerate();
                let pieces = heads.flat_map(|(head, rows)| {
                    let pieces = rows.tiles(REDUCED_ROWS).enumerate();
                    pieces.map(move |(piece, rows)| (head, piece * REDUCED_ROWS, rows))
                });
                let row = padded(dim);
                for_each(
                    workers(self.tasks() * sums),
                    REDUCED_ROWS * row,
                    pieces,
                    |(head, first, mut out), total| {
                        let total = &mut total[..out.rows() * row];
                        let tasks = &partial[head * self.chunks * per_task..];
                        let tasks = tasks[..self.chunks * per_task].chunks_exact(per_task);
                        let (from, len) = (skip + first * row, total.len());
                        add_up(total, tasks.map(|sums| &sums[from..][..len]));
                        for (index, total) in total.chunks_exact(row).enumerate() {
                            T::from_reals(&total[..dim], out.row(index));
                        }
                    },
                );
            }
        }
        for (out, skip, per_head) in [
            (&mut gradients.sinks, of_sums, 1),
            (
                &mut gradients.distance_bias,
                of_sums + of_sinks,
                self.distances,
            ),
        ] {
            let Some(out) = out else { continue };
            let length = group * per_head;
            if length == 0 || per_task == 0 {
                out.fill(T::Real::default());
                continue;
            }
            for_each(
                workers(self.tasks() * length),
                0,
                out.chunks_exact_mut(length).enumerate(),
                |(head_kv, out), _: &mut [T::Real]| {
                    out.fill(T::Real::default());
                    let heads = (head_kv..p.batch * p.heads_kv).step_by(p.heads_kv);
                    for task in heads.flat_map(|head| head * self.chunks..(head + 1) * self.chunks)
                    {
                        add(out, &partial[task * per_task + skip..][..length]);
                    }
                },
            );
        }
        if let Some(out) = gradients.captured.as_deref_mut() {
            let skip = of_sums + of_sinks + of_distances;
            let sums = partial.chunks_exact(per_task.max(1));
            self.reduce_captured(inputs, out, sums.map(|sums| &sums[skip..][..of_captured]));
        }
        let (others, size) = (self.slabs.slots_per_part - 1, self.slabs.size);
        if let Some(out) = gradients.bias.as_deref_mut().filter(|_| others * size > 0) {
            let pieces = out.chunks_exact_mut(size).enumerate();
            let pieces = pieces.flat_map(|(part, out)| {
                let pieces = out.chunks_mut(TASK).enumerate();
                pieces.map(move |(piece, out)| (part, piece * TASK, out))
            });
            for_each(
                workers(self.slabs.slots() * size),
                0,
                pieces,
                |(part, first, out), _: &mut [T::Real]| {
                    for slab in part * others..(part + 1) * others {
                        add(out, &slabs[slab * size + first..][..out.len()]);
                    }
                },
            );
        }
    }

    /// Adds the sums of every query head to the part of each captured tensor that the head reads.
    fn reduce_captured<'a, T: Element>(
        &self,
        inputs: &Inputs<'_, T>,
        out: &mut [T::Real],
        sums: impl Iterator<Item = &'a [T::Real]>,
    ) {
        let (p, function) = (&self.problem, inputs.score_function);
        let group = p.group_size();
        out.fill(T::Real::default());
        for (task, sums) in sums.enumerate() {
            let head_kv = task / self.chunks;
            let (batch_item, head_kv) = (head_kv / p.heads_kv, head_kv % p.heads_kv);
            for in_group in 0..group {
                let mut sums = &sums[in_group * self.captured..][..self.captured];
                let head = head_kv * group + in_group;
                let mut first = 0;
                let captured = function.iter().flat_map(|function| function.captured);
                for (captured, (parts, entries)) in captured.zip(inputs.captured()) {
                    let part = match captured {
                        Captured::Pairs(numbers) => {
                            let [batch, heads, ..] = numbers.shape();
                            batch_item.min(batch - 1) * heads + head.min(heads - 1)
                        }
                        Captured::Distances(_) => head,
                    };
                    let (own, others) = sums.split_at(entries);
                    add(&mut out[first + part * entries..][..entries], own);
                    (first, sums) = (first + parts * entries, others);
                }
            }
        }
    }
}
