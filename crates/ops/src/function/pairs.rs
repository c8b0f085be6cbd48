//! The queries and keys of a block of scores, as a user's function sees them.

use core::ops::Range;

use burn::tensor::{Device, Int, Tensor, TensorData};

use super::captured::Frame;
use crate::composed::counting;

/// The pairs of queries and keys of one block: its indices as tensors that broadcast to `[batch, heads_q, queries, keys]`, and the entries of the
/// [captured](crate::Captured) tensors that belong to it.
///
/// Attention is computed in blocks, so a function sees some of the queries and keys at a time. Indices are signed integers of 32 or 64 bits, even where the device's
/// default is another type. PyTorch equivalent: the arguments `b`, `h`, `q_idx` and
/// `kv_idx` of a `score_mod`.
#[derive(Clone, Debug)]
pub struct Pairs {
    pub(crate) block: Block,
    pub(crate) floats: Vec<Tensor<4>>,
    pub(crate) ints: Vec<Tensor<4, Int>>,
}

/// Where a block is.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) frame: Frame,
    pub(crate) batch: usize,
    pub(crate) heads: usize,
    pub(crate) queries: Range<usize>,
    pub(crate) keys: Range<usize>,
    /// Whether the batch items have query offsets.
    pub(crate) has_offsets: bool,
    /// The position of the call's first query on the axis of its keys, `[batch]` with offsets, otherwise `[1]`.
    pub(crate) first_position: Tensor<1, Int>,
}

impl Block {
    fn device(&self) -> Device {
        self.first_position.device()
    }
}

impl Pairs {
    /// The sizes of the block, `[batch, heads_q, queries, keys]`.
    pub fn sizes(&self) -> [usize; 4] {
        let block = &self.block;
        let (queries, keys) = (block.queries.len(), block.keys.len());
        [block.batch, block.heads, queries, keys]
    }

    /// The index of each item of the batch, `[batch, 1, 1, 1]`.
    pub fn batch_items(&self) -> Tensor<4, Int> {
        self.range(0..self.block.batch, 0)
    }

    /// The index of each query head, `[1, heads_q, 1, 1]`.
    pub fn heads(&self) -> Tensor<4, Int> {
        self.range(0..self.block.heads, 1)
    }

    /// The index of each query, `[1, 1, queries, 1]`, counted from the first query of the call.
    pub fn queries(&self) -> Tensor<4, Int> {
        self.range(self.block.queries.clone(), 2)
    }

    /// The index of each key, `[batch or 1, 1, 1, keys]`, counted from the first key of its sequence: beside a cache, also from one that the cache has
    /// dropped.
    pub fn keys(&self) -> Tensor<4, Int> {
        let keys = self.range(self.block.keys.clone(), 3);
        self.after(keys, &self.block.frame.first_keys)
    }

    /// The key at which each query stands, `[batch or 1, 1, queries, 1]`: by the causal alignment, or by the
    /// [query offsets](crate::AttentionOptions::query_offsets). Unlike [`queries`](Self::queries), it is the same in decoding as in one call for
    /// all tokens.
    pub fn positions(&self) -> Tensor<4, Int> {
        let first = self.block.first_position.clone();
        let [batch] = first.dims();
        let positions = self.queries() + first.reshape([batch, 1, 1, 1]);
        let frame = &self.block.frame;
        self.after(self.after(positions, &frame.first_keys), &frame.beyond)
    }

    /// By how many tokens each query stands after each key, `[batch or 1, 1, queries, keys]`: negative for a later key.
    pub fn distances(&self) -> Tensor<4, Int> {
        self.positions() - self.keys()
    }

    /// The captured floats, in their order: those of a score function in the precision of the scores, with one number for each pair unless
    /// they are [whole](crate::Captured::whole); those of a mask function as they were captured.
    ///
    /// # Panics
    ///
    /// When the function has captured another number of floats.
    pub fn floats<const N: usize>(&self) -> [Tensor<4>; N] {
        self.all("floats", &self.floats)
    }

    /// The captured integers, in their order.
    ///
    /// # Panics
    ///
    /// When the function has captured another number of integers.
    pub fn ints<const N: usize>(&self) -> [Tensor<4, Int>; N] {
        self.all("integers", &self.ints)
    }

    fn all<T: Clone, const N: usize>(&self, kind: &str, tensors: &[T]) -> [T; N] {
        tensors
            .to_vec()
            .try_into()
            .unwrap_or_else(|tensors: Vec<T>| {
                panic!(
                    "attention: the function '{}' reads {N} tensors of {kind}, but has captured {}",
                    self.block.frame.name,
                    tensors.len()
                )
            })
    }

    /// Indices that are counted from those of each sequence, which are all 0 if there are none.
    fn after(&self, indices: Tensor<4, Int>, first: &[i64]) -> Tensor<4, Int> {
        if first.is_empty() {
            return indices;
        }
        let first = TensorData::new(first.to_vec(), [first.len(), 1, 1, 1]);
        indices + Tensor::from_data(first, counting(&self.block.device()))
    }

    fn range(&self, range: Range<usize>, axis: usize) -> Tensor<4, Int> {
        let mut shape = [1; 4];
        shape[axis] = range.len();
        let range = range.start as i64..range.end as i64;
        Tensor::<1, Int>::arange(range, counting(&self.block.device())).reshape(shape)
    }
}
