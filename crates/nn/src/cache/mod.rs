//! Keys and values of the tokens so far, so that the next token costs one token's work.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `mod.rs` | [`KvCache`]: what there is of each sequence, and how to take it back |
//! | `append.rs` | new tokens, and the room for them |
//! | `check.rs` | what is refused: another layer's tokens, and too many |
//! | `buffer.rs` | the memory, exact or in 8 bits |
//! | `join.rs` | sequences that join others |
//! | `bias.rs` | what positions add to the scores of a token's query |
//! | `config.rs` | [`KvCacheConfig`] |

mod append;
mod bias;
mod buffer;
mod check;
mod config;
mod join;

use burn::tensor::{DType, Device};

use crate::{
    error::expect_valid,
    positions::{Positions, indices},
};
pub(crate) use append::Context;
use bias::PositionBias;
use buffer::{Buffer, Layout};
pub use config::KvCacheConfig;

/// Keys and values of one attention layer: those of its `n_kv_heads` only, and nothing else.
///
/// Every sequence of the batch has a length of its own; its tokens stand at the front, what follows is room. The memory
/// doubles when it is full. A layer with a window keeps what its window reaches and drops the rest.
///
/// # Cost
///
/// `2 · batch · n_kv_heads · capacity · d_head` numbers. Adding a token writes `2 · batch · n_kv_heads · d_head` of them
/// in place, where nobody else holds the tensors: do not keep clones of a cache that goes on.
///
/// With ALiBi or a relative bias also `n_heads · capacity` numbers, `3 · n_heads · capacity` where sequences have unequal lengths: what
/// positions add to the scores of one query, which every token reads. Like keys and values they are those of the module that the first token of the sequences saw; a cache
/// that is [`reset`](Self::reset) begins anew.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use burn_attn::{KvCacheConfig, SelfAttentionConfig, SelfAttentionInput};
///
/// let device = Device::default();
/// let attention = SelfAttentionConfig::new(32, 4).with_causal(true).init(&device);
/// let x = Tensor::<3>::random([2, 7, 32], Distribution::Default, &device);
/// let whole = attention.forward(SelfAttentionInput::new(x.clone()));
///
/// let mut cache = attention.cache(2, &KvCacheConfig::new(100));
/// attention.forward_cached(SelfAttentionInput::new(x.clone().narrow(1, 0, 6)), &mut cache);
/// let last = attention.forward_cached(SelfAttentionInput::new(x.narrow(1, 6, 1)), &mut cache);
/// whole.narrow(1, 6, 1).into_data().assert_approx_eq::<f32>(&last.into_data(), Default::default());
/// ```
#[derive(Clone, Debug)]
pub struct KvCache {
    /// Absent only while it is written.
    keys: Option<Buffer>,
    values: Option<Buffer>,
    key_layout: Layout,
    value_layout: Layout,
    /// Tokens in the buffers, of each sequence.
    stored: Vec<usize>,
    /// Tokens that were there before them and have been dropped, of each sequence.
    dropped: Vec<usize>,
    max_len: usize,
    initial_len: usize,
    /// Whether the dtype is known: without, it is that of the first keys.
    settled: bool,
    /// How many tokens before itself a token looks back at, if not at all.
    window: Option<usize>,
    bias: PositionBias,
}

/// What a layer that makes a cache knows.
pub(crate) struct Shape {
    pub(crate) batch: usize,
    pub(crate) n_kv_heads: usize,
    pub(crate) d_head: usize,
    pub(crate) d_value_head: usize,
    /// That of the keys, if the layer knows it before there are any.
    pub(crate) dtype: Option<DType>,
    pub(crate) device: Device,
    pub(crate) window: Option<usize>,
}

impl KvCache {
    pub(crate) fn new(shape: Shape, config: &KvCacheConfig) -> Self {
        expect_valid(config.validate());
        assert!(
            !config.quantized || shape.device.supports_dtype(DType::I8),
            "KvCache: quantized needs 8-bit integers, which {:?} does not have",
            shape.device
        );
        let default = || shape.device.settings().float_dtype.into();
        let dtype = shape.dtype.unwrap_or_else(default);
        let layout = |dim| Layout {
            batch: shape.batch,
            heads: shape.n_kv_heads,
            dim,
            dtype,
            device: shape.device.clone(),
            quantized: config.quantized,
        };
        let (key_layout, value_layout) = (layout(shape.d_head), layout(shape.d_value_head));
        let capacity = config.initial_len.min(config.max_len);
        Self {
            keys: Some(Buffer::new(&key_layout, capacity)),
            values: Some(Buffer::new(&value_layout, capacity)),
            key_layout,
            value_layout,
            stored: vec![0; shape.batch],
            dropped: vec![0; shape.batch],
            max_len: config.max_len,
            initial_len: capacity,
            settled: shape.dtype.is_some(),
            window: shape.window,
            bias: PositionBias::default(),
        }
    }

    /// Takes the `dtype` of the first keys, if the layer could not say it.
    pub(crate) fn settle(&mut self, dtype: DType) {
        if self.settled {
            return;
        }
        self.settled = true;
        for (buffer, layout) in [
            (&mut self.keys, &mut self.key_layout),
            (&mut self.values, &mut self.value_layout),
        ] {
            if layout.dtype != dtype {
                layout.dtype = dtype;
                *buffer = Some(Buffer::new(layout, self.initial_len));
            }
        }
    }

    /// Tokens of each sequence so far, those that a window has left behind included.
    pub fn lengths(&self) -> Vec<usize> {
        let both = self.stored.iter().zip(&self.dropped);
        both.map(|(stored, dropped)| stored + dropped).collect()
    }

    /// Whether every sequence has as many tokens as in `other`.
    pub(crate) fn agrees_with(&self, other: &Self) -> bool {
        let tokens = |cache: &Self, b: usize| cache.stored[b] + cache.dropped[b];
        self.batch() == other.batch()
            && (0..self.batch()).all(|b| tokens(self, b) == tokens(other, b))
    }

    /// Where the next tokens stand, of which sequence `b` has `counts[b]`, padded to `len`.
    pub(crate) fn positions(&self, counts: &[usize], len: usize) -> Positions {
        let lengths = self.lengths();
        match counts.iter().all(|&count| count == len) {
            true => lengths.into(),
            false => Positions::padded(lengths, counts.to_vec()),
        }
    }

    /// Sequences.
    pub fn batch(&self) -> usize {
        self.stored.len()
    }

    /// Tokens there is room for in each sequence before the memory grows.
    pub fn capacity(&self) -> usize {
        self.keys().capacity()
    }

    /// Memory held (bytes).
    pub fn bytes(&self) -> usize {
        self.keys().bytes() + self.values().bytes() + self.bias.bytes()
    }

    /// Sequence `b` becomes what sequence `rows[b]` was, as beam search needs it; there may be more or fewer than before.
    ///
    /// # Panics
    ///
    /// When there is no such sequence.
    ///
    /// # Cost
    ///
    /// A copy of the cache, or nothing if every sequence stays where it is.
    pub fn reorder(&mut self, rows: &[usize]) {
        let batch = self.batch();
        if let Some(row) = rows.iter().find(|&&row| row >= batch) {
            panic!("KvCache: there is no sequence {row} among {batch} to reorder to");
        }
        if rows.iter().copied().eq(0..batch) {
            return;
        }
        self.stored = rows.iter().map(|&row| self.stored[row]).collect();
        self.dropped = rows.iter().map(|&row| self.dropped[row]).collect();
        self.key_layout.batch = rows.len();
        self.value_layout.batch = rows.len();
        if rows.is_empty() {
            self.keys = Some(Buffer::new(&self.key_layout, self.initial_len));
            self.values = Some(Buffer::new(&self.value_layout, self.initial_len));
            return;
        }
        let items = indices(rows.iter().copied(), &self.key_layout.device);
        self.keys = self.keys.take().map(|keys| keys.select(items.clone()));
        self.values = self.values.take().map(|values| values.select(items));
    }

    /// Forgets all but the first `lengths[b]` tokens of each sequence `b`: those that a draft model guessed wrong, say.
    ///
    /// # Panics
    ///
    /// When a length is beyond what the sequence has, or among what a window has dropped.
    pub fn truncate(&mut self, lengths: &[usize]) {
        assert!(
            lengths.len() == self.batch(),
            "KvCache: {} lengths for {} sequences",
            lengths.len(),
            self.batch()
        );
        for (b, &length) in lengths.iter().enumerate() {
            let (stored, dropped) = (self.stored[b], self.dropped[b]);
            assert!(
                length <= stored + dropped,
                "KvCache: sequence {b} has {} tokens and cannot be truncated to {length}",
                stored + dropped
            );
            // Its next token looks back at the window before it.
            let needed = length.saturating_sub(self.window.unwrap_or(usize::MAX));
            assert!(
                length == 0 || dropped <= needed,
                "KvCache: sequence {b} cannot be truncated to {length} tokens: its window would need tokens from \
                 {needed} on, but those before {dropped} have been dropped"
            );
        }
        for (b, &length) in lengths.iter().enumerate() {
            if length == 0 {
                self.dropped[b] = 0;
            }
            self.stored[b] = length - self.dropped[b];
        }
    }

    /// Forgets everything and keeps the memory.
    pub fn reset(&mut self) {
        self.stored.fill(0);
        self.dropped.fill(0);
    }

    /// Whether all sequences have as many tokens in the buffers.
    fn is_even(&self) -> bool {
        self.stored.iter().all(|&stored| stored == self.stored[0])
    }

    fn keys(&self) -> &Buffer {
        self.keys
            .as_ref()
            .expect("a buffer is absent only while it is written")
    }

    fn values(&self) -> &Buffer {
        self.values
            .as_ref()
            .expect("a buffer is absent only while it is written")
    }
}
