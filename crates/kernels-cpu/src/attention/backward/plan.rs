//! Which task computes what, and where it adds its sums.
//!
//! One task has the query tiles of one key/value head, so that the gradients of its keys and values belong to it alone.
//! If there are few heads, their tiles are divided among several tasks with sums of their own, which are added up in
//! the order of the tasks. Their number depends only on the problem, and so do the bits of the result.

use alloc::{vec, vec::Vec};
use core::ops::Range;

use crate::{
    Problem,
    attention::{
        backward::gradients::Gradients,
        inputs::Inputs,
        kernel::{
            backward::tile_scratch,
            backward_step::RequiredGrads,
            tile::{QUERIES, padded},
        },
    },
    threads::{parallel::Execution, scratch::LINE_NUMBERS},
    view::{
        element::Element,
        rows_mut::{HeadMut, RowsMut},
    },
};

/// Tasks of the whole call, unless there are more heads: a constant, so that the bits do not depend on the number of threads.
///
/// The parallelism is at most the larger of it and `batch · heads_kv`.
const ENOUGH_TASKS: usize = 8;
/// Partial sums of the gradient of a shared bias, at most: so many tasks can add to it at the same time.
const ENOUGH_SLABS: usize = 4;

/// How the work is divided.
pub(crate) struct Plan {
    pub(crate) problem: Problem,
    pub(crate) required: RequiredGrads,
    /// Tasks per batch item and key/value head.
    pub(crate) chunks: usize,
    /// Present if the gradient of the bias is required.
    pub(crate) bias: Option<BiasLayout>,
    /// Distances of one query head, 0 if their gradient is not required.
    pub(crate) distances: usize,
    sinks: bool,
}

/// The gradient of the bias, contiguous in the shape of the bias.
pub(crate) struct BiasLayout {
    /// 0 where the bias repeats.
    pub(crate) strides: [usize; 4],
    shape: [usize; 4],
}

/// Some tiles of one key/value head, and its share of the results.
pub(crate) struct Task<'a, T: Element> {
    pub(crate) batch_item: usize,
    pub(crate) head_kv: usize,
    /// Indices into the tiles of all query heads of the group, head after head.
    pub(crate) tiles: Range<usize>,
    /// The rows of each tile, if required.
    pub(crate) q: Vec<HeadMut<'a, T>>,
    /// The rows of the head, if this is its only task.
    pub(crate) k: Option<HeadMut<'a, T>>,
    pub(crate) v: Option<HeadMut<'a, T>>,
    /// Sums of the gradients of keys and values, if the head has other tasks as well.
    pub(crate) partial: Option<&'a mut [T::Real]>,
    /// One sum per query head of the group, if required.
    pub(crate) sinks: &'a mut [T::Real],
    /// One sum per distance and query head of the group, if required.
    pub(crate) distance: &'a mut [T::Real],
    /// Index in the bias of the first sum of the slot.
    pub(crate) bias_origin: usize,
}

/// Tasks that run one after the other because they add to the same sums.
pub(crate) struct Slot<'a, T: Element> {
    pub(crate) tasks: Vec<Task<'a, T>>,
    /// Sums of the gradient of the bias.
    pub(crate) bias: &'a mut [T::Real],
}

impl Plan {
    pub(crate) fn new<T: Element>(inputs: &Inputs<'_, T>, gradients: &Gradients<'_, T>) -> Self {
        let problem = inputs.problem;
        let bias = inputs
            .bias
            .filter(|_| gradients.bias.is_some())
            .map(|bias| {
                let shape = bias.shape();
                let [_, heads, queries, keys] = shape;
                let strides = [heads * queries * keys, queries * keys, keys, 1];
                let strides =
                    core::array::from_fn(|axis| if shape[axis] == 1 { 0 } else { strides[axis] });
                BiasLayout { strides, shape }
            });
        let distance = inputs.distance_bias.is_some() && gradients.distance_bias.is_some();
        let heads = problem.batch * problem.heads_kv;
        let tiles = problem.group_size() * problem.len_q.div_ceil(QUERIES);
        Self {
            problem,
            required: RequiredGrads {
                q: gradients.q.is_some(),
                k: gradients.k.is_some(),
                v: gradients.v.is_some(),
                scores: bias.is_some() || distance,
            },
            chunks: ENOUGH_TASKS.div_ceil(heads.max(1)).min(tiles).max(1),
            bias,
            distances: if distance { inputs.distances() } else { 0 },
            sinks: inputs.sinks.is_some() && gradients.sinks.is_some(),
        }
    }

    /// Query head within the group, and first query, of a tile.
    pub(crate) fn tile(&self, index: usize) -> (usize, usize) {
        let per_head = self.problem.len_q.div_ceil(QUERIES);
        (index / per_head, index % per_head * QUERIES)
    }

    fn tiles(&self) -> usize {
        self.problem.group_size() * self.problem.len_q.div_ceil(QUERIES)
    }

    pub(crate) fn tasks(&self) -> usize {
        self.problem.batch * self.problem.heads_kv * self.chunks
    }

    /// Numbers of the sums for the keys and the values of one head.
    pub(crate) fn sums_per_head(&self) -> [usize; 2] {
        let Problem {
            len_kv,
            dim_qk,
            dim_v,
            ..
        } = self.problem;
        let sums = |required, dim| if required { len_kv * padded(dim) } else { 0 };
        [sums(self.required.k, dim_qk), sums(self.required.v, dim_v)]
    }

    /// Numbers that each task sums separately: keys and values, then sinks, then distances. They fill whole cache lines, which no other
    /// task writes.
    pub(crate) fn partial_per_task(&self) -> [usize; 3] {
        let group = self.problem.group_size();
        let keys_and_values = if self.chunks > 1 {
            self.sums_per_head().iter().sum()
        } else {
            0
        };
        let sinks = if self.sinks { group } else { 0 };
        [keys_and_values, sinks, group * self.distances]
            .map(|sums| sums.next_multiple_of(LINE_NUMBERS))
    }

    pub(crate) fn partial_sums(&self) -> usize {
        self.tasks() * self.partial_per_task().iter().sum::<usize>()
    }

    pub(crate) fn per_worker(&self) -> usize {
        let sums = if self.chunks > 1 {
            0
        } else {
            self.sums_per_head().iter().sum()
        };
        sums + tile_scratch(&self.problem)
    }

    pub(crate) fn workers(&self, execution: Execution) -> usize {
        execution.workers(self.slabs().1, 2.5 * self.problem.operations())
    }

    /// The parts of the bias that different heads read, and the slots: which tasks add to which part.
    ///
    /// Tasks of different slots never add to the same numbers.
    pub(crate) fn slabs(&self) -> (usize, usize) {
        let Some(bias) = &self.bias else {
            return (0, self.tasks());
        };
        let [batch, heads, queries, _] = bias.shape;
        let parts = batch * if heads == 1 { 1 } else { self.problem.heads_kv };
        let per_part = self.tasks() / parts.max(1);
        // Sums that do not have one row per query are small: every task has its own.
        let shared = if queries == 1 {
            per_part
        } else {
            ENOUGH_SLABS.div_ceil(parts.max(1)).min(per_part)
        };
        (parts, parts * shared.max(1))
    }

    /// Numbers of one slot's sums of the bias.
    pub(crate) fn slab(&self) -> usize {
        let parts = self.slabs().0.max(1);
        self.bias
            .as_ref()
            .map_or(0, |bias| bias.shape.iter().product::<usize>() / parts)
    }

    /// Sums of the bias that are not kept in the gradient itself.
    pub(crate) fn slabs_in_scratch(&self) -> usize {
        let (parts, slots) = self.slabs();
        if self.bias.is_some() {
            (slots - parts) * self.slab()
        } else {
            0
        }
    }

    /// The part of the bias that a head reads.
    fn part(&self, batch_item: usize, head_kv: usize) -> usize {
        let Some(bias) = &self.bias else {
            return 0;
        };
        let [batch, heads, ..] = bias.shape;
        let (batch_item, head_kv) = (
            if batch == 1 { 0 } else { batch_item },
            if heads == 1 { 0 } else { head_kv },
        );
        batch_item * if heads == 1 { 1 } else { self.problem.heads_kv } + head_kv
    }

    /// All tasks, with their shares of the results.
    pub(crate) fn slots<'a, T: Element>(
        &self,
        gradients: &'a mut Gradients<'_, T>,
        partial: &'a mut [T::Real],
        slabs: &'a mut [T::Real],
    ) -> Vec<Slot<'a, T>> {
        let Problem {
            batch,
            heads_kv,
            len_kv,
            dim_qk,
            dim_v,
            ..
        } = self.problem;
        let Problem { heads_q, len_q, .. } = self.problem;
        let q = gradients.q.as_mut().map(RowsMut::reborrow).into_iter();
        let mut q = q
            .flat_map(|rows| rows.heads([batch, heads_q, len_q], dim_qk))
            .flat_map(|head| head.tiles(QUERIES));
        let of_heads = [batch, heads_kv, len_kv];
        let only = |_: &&mut RowsMut<'_, T>| self.chunks == 1;
        let mut k = heads(
            gradients.k.as_mut().filter(only).map(RowsMut::reborrow),
            of_heads,
            dim_qk,
        );
        let mut v = heads(
            gradients.v.as_mut().filter(only).map(RowsMut::reborrow),
            of_heads,
            dim_v,
        );
        let mut partial = Some(partial);
        let mut bias = gradients.bias.as_deref_mut();
        let mut slabs = Some(slabs);
        let (parts, slots) = self.slabs();
        let per_part = slots / parts.max(1);
        let mut result: Vec<Slot<'a, T>> = (0..slots)
            .map(|slot| {
                // The first slot of a part sums in the gradient itself.
                let home = if slot % per_part.max(1) == 0 {
                    &mut bias
                } else {
                    &mut slabs
                };
                let bias = cut(home, self.slab()).unwrap_or_default();
                Slot {
                    tasks: Vec::new(),
                    bias,
                }
            })
            .collect();

        let [of_sums, of_sinks, of_distances] = self.partial_per_task();
        let mut tasks_of_part = vec![0; parts.max(1)];
        let mut tasks = 0;
        for batch_item in 0..batch {
            for head_kv in 0..heads_kv {
                for chunk in 0..self.chunks {
                    let tiles = chunk * self.tiles() / self.chunks
                        ..(chunk + 1) * self.tiles() / self.chunks;
                    let part = self.part(batch_item, head_kv);
                    let task = Task {
                        batch_item,
                        head_kv,
                        q: q.by_ref().take(tiles.len()).collect(),
                        tiles,
                        k: k.next(),
                        v: v.next(),
                        partial: cut(&mut partial, of_sums).filter(|_| self.chunks > 1),
                        sinks: cut(&mut partial, of_sinks).unwrap_or_default(),
                        distance: cut(&mut partial, of_distances).unwrap_or_default(),
                        bias_origin: part * self.slab(),
                    };
                    // Dealt back and forth, because under a causal mask each tile has more work than the one before.
                    let slot = if parts == 0 {
                        tasks
                    } else {
                        let (round, at) = (
                            tasks_of_part[part] / per_part,
                            tasks_of_part[part] % per_part,
                        );
                        let back = per_part - 1 - at;
                        part * per_part + if round % 2 == 0 { at } else { back }
                    };
                    result[slot].tasks.push(task);
                    tasks_of_part[part] += 1;
                    tasks += 1;
                }
            }
        }
        result
    }
}

/// The heads of a gradient, if it is required.
pub(crate) fn heads<T: Send>(
    rows: Option<RowsMut<'_, T>>,
    sizes: [usize; 3],
    dim: usize,
) -> impl Iterator<Item = HeadMut<'_, T>> + Send {
    rows.into_iter()
        .flat_map(move |rows| rows.heads(sizes, dim))
}

/// Cuts the next `len` elements off a slice, if there is one.
fn cut<'a, T>(rest: &mut Option<&'a mut [T]>, len: usize) -> Option<&'a mut [T]> {
    let (piece, others) = rest.take()?.split_at_mut(len);
    *rest = Some(others);
    Some(piece)
}
