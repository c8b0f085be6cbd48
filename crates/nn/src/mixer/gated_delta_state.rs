//! What the gated delta rule keeps of the tokens so far.

use burn::tensor::Tensor;

use super::MixerState;
use crate::{
    parameter::{bytes, is_same_device},
    positions::indices,
};

/// The state of a [`GatedDeltaRule`](crate::GatedDeltaRule) for a batch of sequences: the memory of every head, and the last tokens, which the
/// convolution reads. Its size does not depend on the number of tokens, of which [`truncate`](MixerState::truncate) can only remove all or none. It
/// has room for any number, whatever the `max_len` of a [`KvCacheConfig`](crate::KvCacheConfig).
#[derive(Clone, Debug)]
pub struct GatedDeltaState {
    lengths: Vec<usize>,
    /// Absent before there are tokens.
    pub(super) memory: Option<Memory>,
}

#[derive(Clone, Debug)]
pub(super) struct Memory {
    /// What the convolution reads before the next token: `[batch, kernel_len − 1, channels]`.
    pub(super) tail: Tensor<3>,
    /// `[batch, n_value_heads, d_key_head, d_value_head]`, in f32 or wider.
    pub(super) matrix: Tensor<4>,
}

/// What the numbers of [`Memory::sizes`] mean.
const SIZES: &str = "[kernel_len − 1, channels, heads, widths of keys and values]";

impl Memory {
    pub(super) fn sizes(&self) -> [usize; 5] {
        let [_, len, channels] = self.tail.dims();
        let [_, heads, keys, values] = self.matrix.dims();
        [len, channels, heads, keys, values]
    }

    /// An empty state of the same widths for `batch` sequences.
    fn empty(&self, batch: usize) -> Self {
        let [len, channels, heads, keys, values] = self.sizes();
        let (of_tail, of_matrix) = (self.tail.dtype(), self.matrix.dtype());
        let device = self.tail.device();
        Self {
            tail: Tensor::zeros([batch, len, channels], (&device, of_tail)),
            matrix: Tensor::zeros([batch, heads, keys, values], (&device, of_matrix)),
        }
    }
}

/// The dtypes and devices of two tensors, if they differ.
fn different_places(own: &Tensor<3>, other: &Tensor<3>) -> Option<[String; 2]> {
    let is_same = own.dtype() == other.dtype() && is_same_device(&own.device(), &other.device());
    let described = |x: &Tensor<3>| format!("in {:?} on {:?}", x.dtype(), x.device());
    (!is_same).then(|| [described(own), described(other)])
}

impl GatedDeltaState {
    pub(super) fn new(batch: usize) -> Self {
        Self {
            lengths: vec![0; batch],
            memory: None,
        }
    }

    /// Panics unless the state is one of the sequences `x` of a module with these [sizes](Memory::sizes).
    pub(super) fn check(&self, x: &Tensor<3>, sizes: [usize; 5]) {
        let ([batch, _, _], own) = (x.dims(), self.lengths.len());
        assert!(
            batch == own,
            "GatedDeltaRule: {batch} sequences do not fit a state of {own}"
        );
        let Some(memory) = &self.memory else { return };
        let own = memory.sizes();
        assert!(
            own == sizes,
            "GatedDeltaRule: a state of {SIZES} {own:?} does not fit a layer of {sizes:?}: it was made for another layer"
        );
        if let Some([own, new]) = different_places(&memory.tail, x) {
            panic!("GatedDeltaRule: an input {new} does not fit a state {own}");
        }
    }

    /// Adds the first `lengths[b]` of `len` tokens of each sequence `b`, after which the memory is `matrix`. `read` is what the convolution has
    /// read: `[batch, kernel_len − 1 + len, channels]`.
    pub(super) fn add(
        &mut self,
        lengths: &[usize],
        len: usize,
        read: Tensor<3>,
        matrix: Tensor<4>,
    ) {
        let [_, rows, _] = read.dims();
        // A copy: a view would keep all of the rows.
        let last = |read: Tensor<3>, length| {
            let rows = indices(length..length + rows - len, &read.device());
            read.select(1, rows)
        };
        let tail = match lengths.iter().all(|&length| length == lengths[0]) {
            true => last(read, lengths[0]),
            false => {
                let of_sequence = |(b, &length)| last(read.clone().narrow(0, b, 1), length);
                Tensor::cat(lengths.iter().enumerate().map(of_sequence).collect(), 0)
            }
        };
        self.memory = Some(Memory { tail, matrix });
        for (own, new) in self.lengths.iter_mut().zip(lengths) {
            *own += new;
        }
    }
}

impl MixerState for GatedDeltaState {
    fn lengths(&self) -> Vec<usize> {
        self.lengths.clone()
    }

    fn bytes(&self) -> usize {
        let memory = self.memory.as_ref();
        memory.map_or(0, |Memory { tail, matrix }| bytes(tail) + bytes(matrix))
    }

    fn reorder(&mut self, rows: &[usize]) {
        let batch = self.lengths.len();
        if let Some(row) = rows.iter().find(|&&row| row >= batch) {
            panic!(
                "GatedDeltaState: cannot reorder to sequence {row}: there are {batch} sequences"
            );
        }
        self.lengths = rows.iter().map(|&row| self.lengths[row]).collect();
        if rows.iter().copied().eq(0..batch) {
            return;
        }
        // In Burn 0.22.1 nothing can be selected with no indices on wgpu.
        let memory = self.memory.take().filter(|_| !rows.is_empty());
        self.memory = memory.map(|Memory { tail, matrix }| {
            let rows = indices(rows.iter().copied(), &tail.device());
            Memory {
                tail: tail.select(0, rows.clone()),
                matrix: matrix.select(0, rows),
            }
        });
    }

    fn join(&mut self, other: Self) {
        if let Some(reason) = self.refuses_join(&other) {
            panic!("{reason}");
        }
        let counts = [self.lengths.len(), other.lengths.len()];
        self.lengths.extend(other.lengths);
        let both = [self.memory.take(), other.memory];
        let Some(like) = both.iter().flatten().next().cloned() else {
            return;
        };
        let parts = both.into_iter().zip(counts).filter(|(_, count)| *count > 0);
        let parts = parts.map(|(part, count)| part.unwrap_or_else(|| like.empty(count)));
        let (tails, matrices) = parts.map(|part| (part.tail, part.matrix)).unzip();
        self.memory = Some(Memory {
            tail: Tensor::cat(tails, 0),
            matrix: Tensor::cat(matrices, 0),
        });
    }

    fn reset(&mut self) {
        *self = Self::new(self.lengths.len());
    }

    fn refuses_join(&self, other: &Self) -> Option<String> {
        let (own, others) = self.memory.as_ref().zip(other.memory.as_ref())?;
        let (own_sizes, sizes) = (own.sizes(), others.sizes());
        if own_sizes != sizes {
            return Some(format!(
                "GatedDeltaState: a state of {SIZES} {sizes:?} cannot join one of {own_sizes:?}: they were made for different layers"
            ));
        }
        let [own, others] = different_places(&own.tail, &others.tail)?;
        Some(format!(
            "GatedDeltaState: a state {others} cannot join one {own}"
        ))
    }
}
