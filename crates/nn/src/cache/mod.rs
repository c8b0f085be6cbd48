//! The keys and values of the tokens so far, so that the next token costs the work of one token.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `mod.rs` | [`KvCache`]: the tokens of each sequence; reordering and truncation |
//! | `append.rs` | adding tokens, and room for them |
//! | `check.rs` | what is refused: tokens of a layer of other sizes, and too many tokens |
//! | `buffer.rs` | the buffers, exact or in 8 bits |
//! | `join.rs` | appending the sequences of another cache |
//! | `bias.rs` | position biases of the newest queries |
//! | `config.rs` | [`KvCacheConfig`], [`CacheStorage`] |

mod append;
mod bias;
mod buffer;
mod check;
mod config;
mod join;

use burn::tensor::{DType, Device, FloatDType, Tensor};
use burn_attn_ops::AttentionBias;

use crate::{
    error::expect_valid,
    positions::{Position, Positions, indices},
};
pub(crate) use append::Appended;
use bias::PositionBias;
use buffer::{Buffer, Layout};
pub use config::{CacheStorage, KvCacheConfig};

/// The keys and values of one attention layer, for its `n_kv_heads` heads.
///
/// The sequences of the batch may differ in length: the tokens of each are at the front of its row, with free room after them.
/// Full buffers double. The cache of a layer with a window keeps what the window reaches and drops the rest.
///
/// # Cost
///
/// `batch · n_kv_heads · capacity · (d_head + d_value_head)` numbers. Adding a token writes those of one position, in
/// place unless the tensors are shared: do not keep clones of a cache that is in use.
///
/// With ALiBi or a relative bias, also `n_heads · capacity` numbers, or `3 · n_heads · capacity` if the sequences have
/// unequal lengths: the position biases of one query. Like keys and values, they are computed with the parameters at the
/// first token of the sequences; [`reset`](Self::reset) starts over. A call with another position encoding, of another kind or
/// with another parameter, computes them again.
///
/// # Source
///
/// Shazeer, "Fast transformer decoding" (arXiv:1911.02150), section 2.4. PyTorch equivalent: a layer of `DynamicCache` of
/// Hugging Face's `transformers`, whose `crop` is [`truncate`](Self::truncate) and whose `reorder_cache` is
/// [`reorder`](Self::reorder).
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
    /// Absent only while being written.
    keys: Option<Buffer>,
    values: Option<Buffer>,
    key_layout: Layout,
    value_layout: Layout,
    /// Tokens of each sequence in the buffers.
    stored: Vec<usize>,
    /// Earlier tokens of each sequence that have been dropped.
    dropped: Vec<usize>,
    max_len: usize,
    initial_capacity: usize,
    /// Whether the dtype is known. If not, the first keys decide.
    dtype_is_fixed: bool,
    /// How many earlier tokens a token sees, if there is a limit.
    window: Option<usize>,
    bias: PositionBias,
}

/// What a layer knows about the cache it makes.
pub(crate) struct Shape {
    pub(crate) batch: usize,
    pub(crate) n_kv_heads: usize,
    pub(crate) d_head: usize,
    pub(crate) d_value_head: usize,
    /// The dtype of the keys, if the layer knows it before there are any.
    pub(crate) dtype: Option<DType>,
    pub(crate) device: Device,
    pub(crate) window: Option<usize>,
}

impl KvCache {
    pub(crate) fn new(shape: Shape, config: &KvCacheConfig) -> Self {
        expect_valid(config.validate());
        assert!(
            config.storage == CacheStorage::Float || shape.device.supports_dtype(DType::I8),
            "KvCache: storage Int8 needs 8-bit integers, which {:?} does not have",
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
            storage: config.storage,
        };
        let (key_layout, value_layout) = (layout(shape.d_head), layout(shape.d_value_head));
        let capacity = config.initial_capacity.min(config.max_len);
        Self {
            keys: Some(Buffer::new(&key_layout, capacity)),
            values: Some(Buffer::new(&value_layout, capacity)),
            key_layout,
            value_layout,
            stored: vec![0; shape.batch],
            dropped: vec![0; shape.batch],
            max_len: config.max_len,
            initial_capacity: capacity,
            dtype_is_fixed: shape.dtype.is_some(),
            window: shape.window,
            bias: PositionBias::default(),
        }
    }

    /// Takes the `dtype` of the first keys, if the layer did not know the dtype.
    pub(crate) fn fix_dtype(&mut self, dtype: DType) {
        if self.dtype_is_fixed {
            return;
        }
        self.dtype_is_fixed = true;
        // Not the initial capacity: `reserve` may come before the first keys.
        let capacity = self.capacity();
        for (buffer, layout) in [
            (&mut self.keys, &mut self.key_layout),
            (&mut self.values, &mut self.value_layout),
        ] {
            if layout.dtype != dtype {
                layout.dtype = dtype;
                *buffer = Some(Buffer::new(layout, capacity));
            }
        }
    }

    /// Number of tokens of each sequence so far, including those that a window has dropped: `[batch]`.
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

    /// The positions of the next tokens: `counts[b]` of sequence `b`, padded to `len`.
    pub(crate) fn positions(&self, counts: &[usize], len: usize) -> Positions {
        let lengths = self.lengths();
        match counts.iter().all(|&count| count == len) {
            true => lengths.into(),
            false => Positions::padded(lengths, counts.to_vec()),
        }
    }

    /// Number of sequences.
    pub fn batch(&self) -> usize {
        self.stored.len()
    }

    /// Number of tokens per sequence that fit before the buffers grow.
    pub fn capacity(&self) -> usize {
        self.keys().capacity()
    }

    /// Memory held (bytes).
    pub fn bytes(&self) -> usize {
        self.keys().bytes() + self.values().bytes() + self.bias.bytes()
    }

    /// Sequence `b` becomes what sequence `rows[b]` was. Rows may be repeated or left out, so the batch may grow or shrink: beam
    /// search, several samples of one prompt, finished requests.
    ///
    /// # Panics
    ///
    /// When a row is not below [`batch`](Self::batch).
    ///
    /// # Cost
    ///
    /// A copy of the result, or nothing if every sequence keeps its place.
    ///
    /// # Example
    ///
    /// ```
    /// use burn::tensor::{Device, Distribution, Tensor};
    /// use burn_attn::{KvCacheConfig, SelfAttentionConfig, SelfAttentionInput};
    ///
    /// let device = Device::default();
    /// let attention = SelfAttentionConfig::new(32, 4).with_causal(true).init(&device);
    /// let random = |batch, len| SelfAttentionInput::new(Tensor::random([batch, len, 32], Distribution::Default, &device));
    /// let mut cache = attention.cache(1, &KvCacheConfig::new(100));
    /// attention.forward_cached(random(1, 9), &mut cache);
    /// cache.reorder(&[0, 0, 0]); // three continuations of one prompt
    /// attention.forward_cached(random(3, 1), &mut cache);
    /// cache.reorder(&[2, 0]); // the second has ended
    /// assert_eq!(cache.lengths(), [10, 10]);
    /// ```
    pub fn reorder(&mut self, rows: &[usize]) {
        let batch = self.batch();
        if let Some(row) = rows.iter().find(|&&row| row >= batch) {
            panic!("KvCache: cannot reorder to sequence {row}: there are {batch} sequences");
        }
        if rows.iter().copied().eq(0..batch) {
            return;
        }
        self.stored = rows.iter().map(|&row| self.stored[row]).collect();
        self.dropped = rows.iter().map(|&row| self.dropped[row]).collect();
        self.key_layout.batch = rows.len();
        self.value_layout.batch = rows.len();
        if rows.is_empty() {
            self.keys = Some(Buffer::new(&self.key_layout, self.initial_capacity));
            self.values = Some(Buffer::new(&self.value_layout, self.initial_capacity));
            return;
        }
        let items = indices(rows.iter().copied(), &self.key_layout.device);
        self.keys = self.keys.take().map(|keys| keys.select(items.clone()));
        self.values = self.values.take().map(|values| values.select(items));
    }

    /// Whether [`truncate`](Self::truncate) to these lengths would not panic.
    pub fn can_truncate(&self, lengths: &[usize]) -> bool {
        let (stored, dropped) = (self.stored.iter(), self.dropped.iter());
        let sequences = stored.zip(dropped).zip(lengths);
        lengths.len() == self.batch()
            && sequences.into_iter().all(|((&stored, &dropped), &length)| {
                let is_there = length == 0 || dropped <= self.first_needed(length);
                length <= stored + dropped && is_there
            })
    }

    /// The first token in the window of the next token of a sequence of this length.
    fn first_needed(&self, length: usize) -> usize {
        length.saturating_sub(self.window.unwrap_or(usize::MAX))
    }

    /// Keeps only the first `lengths[b]` tokens of each sequence `b`: undoes a rejected draft, for example. The
    /// [crate's page](crate#speculative-decoding) shows speculative decoding as a whole.
    ///
    /// # Panics
    ///
    /// When there is not one length per sequence, a sequence has fewer tokens, or the window of the next token would need tokens
    /// that have been dropped. A length of 0 is always possible. So is a length that the sequence had at the last
    /// [`reserve`](Self::reserve), or has reached since within the reserved room.
    ///
    /// # Cost
    ///
    /// None: the next tokens overwrite the removed ones.
    ///
    /// # Example
    ///
    /// ```
    /// use burn::tensor::{Device, Distribution, Tensor};
    /// use burn_attn::{KvCacheConfig, SelfAttentionConfig, SelfAttentionInput};
    ///
    /// let device = Device::default();
    /// let attention = SelfAttentionConfig::new(32, 4).with_causal(true).init(&device);
    /// let random = |len| SelfAttentionInput::new(Tensor::random([2, len, 32], Distribution::Default, &device));
    /// let mut cache = attention.cache(2, &KvCacheConfig::new(100));
    /// attention.forward_cached(random(6), &mut cache);
    /// attention.forward_cached(random(4), &mut cache); // four guesses per sequence
    /// cache.truncate(&[9, 7]); // the first keeps three of them, the second keeps one
    /// assert_eq!(cache.lengths(), [9, 7]);
    /// attention.forward_cached(random(1), &mut cache);
    /// ```
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
            let needed = self.first_needed(length);
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

    /// Removes all tokens and keeps the capacity, for other sequences or after the parameters have changed.
    pub fn reset(&mut self) {
        self.stored.fill(0);
        self.dropped.fill(0);
    }

    /// Whether all sequences have the same number of tokens in the buffers.
    fn is_even(&self) -> bool {
        self.stored.iter().all(|&stored| stored == self.stored[0])
    }

    fn keys(&self) -> &Buffer {
        self.keys
            .as_ref()
            .expect("a buffer is absent only while being written")
    }

    fn values(&self) -> &Buffer {
        self.values
            .as_ref()
            .expect("a buffer is absent only while being written")
    }

    /// The position bias of a query at the position of the last of `len_kv` keys.
    pub(crate) fn bias_of_last_query(
        &mut self,
        position: &Position,
        len_kv: usize,
    ) -> AttentionBias {
        let reach = self
            .window
            .map_or(usize::MAX, |window| window.saturating_add(1));
        let len = self.capacity().min(reach);
        let dtype = self.statistics();
        self.bias.of_last_query(position, [len_kv, len], dtype)
    }

    /// The position bias of one query per sequence, at any position, over [`whole`](Self::whole).
    pub(crate) fn bias_of_distances(&mut self, position: &Position) -> AttentionBias {
        let (capacity, dtype) = (self.capacity(), self.statistics());
        self.bias.of_distances(position, capacity, dtype)
    }

    /// Keys `[batch, n_kv_heads, capacity, d_head]` and values `[batch, n_kv_heads, capacity, d_value_head]`.
    pub(crate) fn whole(&self) -> [Tensor<4>; 2] {
        let capacity = self.capacity();
        [
            self.keys().read(&self.key_layout, 0, capacity),
            self.values().read(&self.value_layout, 0, capacity),
        ]
    }

    /// The dtype in which scores are accumulated.
    fn statistics(&self) -> FloatDType {
        match self.key_layout.dtype {
            DType::F64 => FloatDType::F64,
            _ => FloatDType::F32,
        }
    }
}
