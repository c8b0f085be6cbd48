//! Which task computes what, and where the task adds its sums.
//!
//! One task has the query tiles of one key/value head, so that no other task adds to the gradients of the head's keys and values.
//! If there are few heads, their tiles are divided among several tasks. Each task has separate sums, which are added up in the
//! order of the tasks. The number of tasks depends only on the problem, and so do the bits of the result.

use alloc::{vec, vec::Vec};
use core::ops::Range;

use crate::{
    Problem,
    attention::{
        backward::gradients::{Gradients, heads},
        inputs::Inputs,
        kernel::{
            backward::pieces,
            forward,
            tile::{QUERIES, padded, tasks_per_head},
        },
    },
    broadcast::contiguous_strides,
    threads::scratch::{LINE_NUMBERS, sum_of_pieces},
    view::{
        element::Element,
        rows_mut::{HeadMut, RowsMut},
    },
};

/// The gradient of a bias with a row per query has at least this many sums, its parts included, if there are as many tasks: so many tasks can add to
/// it at the same time.
const ENOUGH_SLABS: usize = 4;

/// How the work is divided.
pub(crate) struct Plan {
    pub(crate) problem: Problem,
    /// Lengths of the sums for the keys and for the values of one head, 0 if the gradient is not required.
    pub(crate) sums_per_head: [usize; 2],
    /// Tasks per batch item and key/value head.
    pub(crate) chunks: usize,
    /// Strides of the gradient of the bias, 0 where the bias repeats; present if that gradient is required.
    pub(crate) bias_strides: Option<[usize; 4]>,
    pub(crate) slabs: Slabs,
    /// Distances of one query head, 0 if their gradient is not required.
    pub(crate) distances: usize,
    /// Numbers that the score function has captured for one query head, 0 if their gradient is not required.
    pub(crate) captured: usize,
    sinks: bool,
    /// Whether the output is computed once more. What was saved is rounded in half precision, and gradients of a row's scores then no longer add up to
    /// 0, which sums over distances, or of captured numbers, magnify.
    pub(crate) recomputes_output: bool,
}

/// Which tasks add to which sums of the gradient of the bias. Tasks of different slots never add to the same numbers.
pub(crate) struct Slabs {
    /// Parts of the bias that different heads read.
    pub(crate) parts: usize,
    /// Slots of a part; the first of them sums in the gradient itself.
    pub(crate) slots_per_part: usize,
    /// Numbers of a part, 0 if the gradient is not required.
    pub(crate) size: usize,
    /// Strides from one batch item to the next and from one key/value head to the next, in parts.
    strides: [usize; 2],
}

impl Slabs {
    /// For the gradient of a bias of this shape; `None` if that gradient is not required.
    fn new(problem: &Problem, bias: Option<[usize; 4]>, tasks: usize) -> Self {
        let shape = bias.unwrap_or([1, 1, 1, 0]);
        let [batch, heads, queries, _] = shape;
        let heads_kv = if heads == 1 { 1 } else { problem.heads_kv };
        let parts = batch * heads_kv;
        // Sums that do not have one row per query are small: every task has separate sums.
        let slots_per_part = match queries {
            1 => tasks / parts,
            _ => ENOUGH_SLABS.div_ceil(parts).min(tasks / parts),
        };
        Self {
            parts,
            slots_per_part,
            size: shape.iter().product::<usize>() / parts,
            strides: [
                if batch == 1 { 0 } else { heads_kv },
                usize::from(heads > 1),
            ],
        }
    }

    pub(crate) fn slots(&self) -> usize {
        self.parts * self.slots_per_part
    }

    /// Length of the sums that are not kept in the gradient itself.
    pub(crate) fn in_scratch(&self) -> usize {
        (self.slots() - self.parts) * self.size
    }

    /// The part that a head reads.
    fn part(&self, batch_item: usize, head_kv: usize) -> usize {
        batch_item * self.strides[0] + head_kv * self.strides[1]
    }
}

/// Some tiles of one key/value head, and the task's share of the results.
pub(crate) struct Task<'a, T: Element> {
    pub(crate) batch_item: usize,
    pub(crate) head_kv: usize,
    /// Indices into the tiles of all query heads of the group, head after head.
    pub(crate) tiles: Range<usize>,
    /// The rows of each tile in the query gradient, if required.
    pub(crate) q: Vec<HeadMut<'a, T>>,
    /// The rows of the head in the key gradient, if the head has no other task.
    pub(crate) k: Option<HeadMut<'a, T>>,
    pub(crate) v: Option<HeadMut<'a, T>>,
    /// Sums of the gradients of keys and values, if the head has other tasks as well.
    pub(crate) partial: Option<&'a mut [T::Real]>,
    /// One sum per query head of the group, if required.
    pub(crate) sinks: &'a mut [T::Real],
    /// One sum per distance and query head of the group, if required.
    pub(crate) distance: &'a mut [T::Real],
    /// One sum per captured number and query head of the group, if required.
    pub(crate) captured: &'a mut [T::Real],
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
        let options = &inputs.options;
        let bias = options.bias.filter(|_| gradients.bias.is_some());
        let shape = bias.map(|bias| bias.shape());
        let distance = inputs.distance_bias.is_some() && gradients.distance_bias.is_some();
        let heads = problem.batch * problem.heads_kv;
        let tiles = problem.group_size() * problem.len_q.div_ceil(QUERIES);
        let chunks = tasks_per_head(heads, tiles);
        let sums = |required, dim| match required {
            true => problem.len_kv * padded(dim),
            false => 0,
        };
        let distances = if distance { inputs.distances() } else { 0 };
        let captured = match gradients.captured {
            Some(_) => inputs.captured().map(|(_, entries)| entries).sum(),
            None => 0,
        };
        let is_rounded = T::as_real(&[]).is_none();
        Self {
            problem,
            sums_per_head: [
                sums(gradients.k.is_some(), problem.dim_qk),
                sums(gradients.v.is_some(), problem.dim_v),
            ],
            chunks,
            bias_strides: shape.map(contiguous_strides),
            slabs: Slabs::new(&problem, shape, heads * chunks),
            distances,
            captured,
            sinks: options.sinks.is_some() && gradients.sinks.is_some(),
            recomputes_output: is_rounded && distances + captured > 0,
        }
    }

    /// Query head within the group, and first query, of a tile.
    pub(crate) fn tile(&self, index: usize) -> (usize, usize) {
        let per_head = self.problem.len_q.div_ceil(QUERIES);
        (index / per_head, index % per_head * QUERIES)
    }

    pub(crate) fn tasks(&self) -> usize {
        self.problem.batch * self.problem.heads_kv * self.chunks
    }

    /// Lengths of the sums that each task has separately: keys and values, sinks, distances, captured numbers. Each fills whole cache lines, which no
    /// other task writes.
    pub(crate) fn partial_per_task(&self) -> [usize; 4] {
        let group = self.problem.group_size();
        let keys_and_values = match self.chunks {
            1 => 0,
            _ => self.sums_per_head.iter().sum(),
        };
        let sinks = if self.sinks { group } else { 0 };
        [
            keys_and_values,
            sinks,
            group * self.distances,
            group * self.captured,
        ]
        .map(|sums| sums.next_multiple_of(LINE_NUMBERS))
    }

    pub(crate) fn per_worker(&self) -> usize {
        let sums: usize = match self.chunks {
            1 => self.sums_per_head.iter().sum(),
            _ => 0,
        };
        let tile = sum_of_pieces(pieces(&self.problem));
        sums + match self.recomputes_output {
            false => tile,
            true => {
                let forward = sum_of_pieces(forward::pieces(&self.problem));
                sum_of_pieces(self.output_pieces(QUERIES)) + tile.max(forward)
            }
        }
    }

    /// Output and logsumexp of a tile of so many queries.
    pub(crate) fn output_pieces(&self, queries: usize) -> [usize; 2] {
        [queries * self.problem.dim_v, queries]
    }

    /// All tasks, with their shares of the results.
    pub(crate) fn slots<'a, T: Element>(
        &self,
        gradients: &'a mut Gradients<'_, T>,
        partial: &'a mut [T::Real],
        slabs: &'a mut [T::Real],
    ) -> Vec<Slot<'a, T>> {
        let p = &self.problem;
        let q = gradients.q.as_mut().map(RowsMut::reborrow);
        let mut q = heads(q, p.query_sizes(), p.dim_qk).flat_map(|head| head.tiles(QUERIES));
        let only = |_: &&mut RowsMut<'_, T>| self.chunks == 1;
        let k = gradients.k.as_mut().filter(only).map(RowsMut::reborrow);
        let v = gradients.v.as_mut().filter(only).map(RowsMut::reborrow);
        let mut k = heads(k, p.key_sizes(), p.dim_qk);
        let mut v = heads(v, p.key_sizes(), p.dim_v);
        let mut partial = Some(partial);
        let mut bias = gradients.bias.as_deref_mut();
        let mut slabs = Some(slabs);
        let per_part = self.slabs.slots_per_part;
        let mut slots: Vec<Slot<'a, T>> = (0..self.slabs.slots())
            .map(|slot| {
                let home = match slot % per_part {
                    0 => &mut bias,
                    _ => &mut slabs,
                };
                Slot {
                    tasks: Vec::new(),
                    bias: cut(home, self.slabs.size).unwrap_or_default(),
                }
            })
            .collect();

        let [of_sums, of_sinks, of_distances, of_captured] = self.partial_per_task();
        let tiles = p.group_size() * p.len_q.div_ceil(QUERIES);
        let mut tasks_of_part = vec![0; self.slabs.parts];
        for task in 0..self.tasks() {
            let (head, chunk) = (task / self.chunks, task % self.chunks);
            let (batch_item, head_kv) = (head / p.heads_kv, head % p.heads_kv);
            let tiles = chunk * tiles / self.chunks..(chunk + 1) * tiles / self.chunks;
            let part = self.slabs.part(batch_item, head_kv);
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
                captured: cut(&mut partial, of_captured).unwrap_or_default(),
            };
            // Tasks are dealt to the slots back and forth, because under a causal mask each tile has more work than the one before.
            let count = &mut tasks_of_part[part];
            let (round, at) = (*count / per_part, *count % per_part);
            let at = if round % 2 == 0 {
                at
            } else {
                per_part - 1 - at
            };
            slots[part * per_part + at].tasks.push(task);
            *count += 1;
        }
        slots
    }
}

/// Takes the next `len` elements of an optional slice.
fn cut<'a, T>(rest: &mut Option<&'a mut [T]>, len: usize) -> Option<&'a mut [T]> {
    let (piece, others) = rest.take()?.split_at_mut(len);
    *rest = Some(others);
    Some(piece)
}
