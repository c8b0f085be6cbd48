//! Keys and values of the tokens so far, so that the next token costs one token's work.

mod buffer;

use burn::{
    config::Config,
    tensor::{DType, Device, FloatDType, Int, Tensor, TensorData},
};
use burn_attn_ops::AttentionBias;

use crate::{
    error::ConfigError,
    positions::{Position, Positions},
};
use buffer::{Buffer, Layout};

/// Configuration of a [`KvCache`].
#[derive(Config, Debug)]
pub struct KvCacheConfig {
    /// Most tokens a sequence may have (tokens).
    pub max_len: usize,
    /// How many tokens there is room for at first (tokens); it doubles when it is full.
    #[config(default = 64)]
    pub initial_len: usize,
    /// Whether keys and values are kept in 8 bits with one scale per token and head, in about a quarter of the memory of
    /// f32; each number is then off by at most 1/254 of the largest of its row.
    ///
    /// It saves memory that stays, not memory in use: every token makes floats of all codes that its layer reads,
    /// `batch · n_kv_heads · len_kv · (d_head + d_value_head)` numbers, and lets go of them when the layer is done. That also
    /// takes time.
    ///
    /// Measured over 512 tokens in heads of width 64, the error of a head's context as a part of its length: of normal numbers
    /// 0.8 % on average and 1.5 % at most; where 2 of the 64 channels of keys and values are 10 times as large, 4.3 % and 24 %.
    /// `cargo test --test modules eight_bits -- --nocapture` prints it.
    ///
    /// For backends that have 8-bit integers: the CPU backends do.
    #[config(default = false)]
    pub quantized: bool,
}

impl KvCacheConfig {
    /// Whether a cache can be built.
    ///
    /// # Errors
    ///
    /// Names the field that is zero.
    pub fn validate(&self) -> Result<(), ConfigError> {
        ConfigError::check_positive(
            "KvCacheConfig",
            &[("max_len", self.max_len), ("initial_len", self.initial_len)],
        )
    }
}

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
/// With ALiBi or a relative bias also `n_heads · capacity` numbers: what positions add to the scores of one query, which
/// every token reads. Like keys and values they are those of the module that the first token of the sequences saw; a cache
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
    /// How many tokens before itself a token looks back at, if not at all.
    window: Option<usize>,
    /// What positions add to the scores of a query that stands on the last of so many keys: `[1, n_heads, 1, len]`.
    last_query_bias: Option<Tensor<4>>,
}

/// What a layer that makes a cache knows.
pub(crate) struct Shape {
    pub(crate) batch: usize,
    pub(crate) n_kv_heads: usize,
    pub(crate) d_head: usize,
    pub(crate) d_value_head: usize,
    pub(crate) dtype: DType,
    pub(crate) device: Device,
    pub(crate) window: Option<usize>,
}

/// What there is to look at after an append.
pub(crate) struct Context {
    /// `[batch, n_kv_heads, len_kv, d_head]`, and the same of the values.
    pub(crate) key: Tensor<4>,
    pub(crate) value: Tensor<4>,
    /// Index in the above at which each sequence's new tokens start.
    pub(crate) new_at: Vec<usize>,
}

impl KvCache {
    pub(crate) fn new(shape: Shape, config: &KvCacheConfig) -> Self {
        crate::error::expect_valid(config.validate());
        let layout = |dim| Layout {
            batch: shape.batch,
            heads: shape.n_kv_heads,
            dim,
            dtype: shape.dtype,
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
            window: shape.window,
            last_query_bias: None,
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

    /// Where each sequence's next token stands.
    pub(crate) fn positions(&self) -> Positions {
        let lengths = self.lengths();
        match lengths.as_slice() {
            [first, rest @ ..] if rest.iter().all(|other| other == first) => (*first).into(),
            _ => lengths.into(),
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
        let bias = self.last_query_bias.as_ref();
        let of_bias = bias.map_or(0, |bias| bias.shape().num_elements() * bias.dtype().size());
        self.keys().bytes() + self.values().bytes() + of_bias
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
        let items: Vec<i64> = rows.iter().map(|&row| row as i64).collect();
        let items = TensorData::new(items, [rows.len()]);
        let items = Tensor::<1, Int>::from_data(items, &self.key_layout.device);
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
                dropped <= needed,
                "KvCache: sequence {b} cannot be truncated to {length} tokens: its window would need tokens from \
                 {needed} on, but those before {dropped} have been dropped"
            );
        }
        for (b, &length) in lengths.iter().enumerate() {
            self.stored[b] = length - self.dropped[b];
        }
    }

    /// Forgets everything and keeps the memory.
    pub fn reset(&mut self) {
        self.stored.fill(0);
        self.dropped.fill(0);
    }

    /// Adds the first `counts[b]` tokens of each sequence `b`, which [`check`](Self::check) accepts.
    pub(crate) fn append(&mut self, key: Tensor<4>, value: Tensor<4>, counts: &[usize]) -> Context {
        let [_, _, new, _] = key.dims();
        let mut both = self.stored.iter().zip(&self.dropped);
        if both.all(|(stored, dropped)| stored + dropped == 0) {
            // The parameters may have changed since the sequences that were here before.
            self.last_query_bias = None;
        }
        self.make_room(new, counts);
        let even = self.is_even();
        let new_at = self.stored.clone();
        for (buffer, rows) in [(&mut self.keys, key), (&mut self.values, value)] {
            // Taken out, so that nobody else holds it and it is written in place.
            let Some(old) = buffer.take() else {
                unreachable!("a buffer is absent only here")
            };
            *buffer = Some(match even {
                // What a shorter sequence gets too much is room that its next token overwrites.
                true if new == 0 => old,
                true => old.write(rows, 0, new_at[0]),
                false => counts.iter().enumerate().fold(old, |buffer, (b, &count)| {
                    if count == 0 {
                        return buffer;
                    }
                    let rows = rows.clone().narrow(0, b, 1).narrow(2, 0, count);
                    buffer.write(rows, b, new_at[b])
                }),
            });
        }
        for (stored, count) in self.stored.iter_mut().zip(counts) {
            *stored += count;
        }
        // Even sequences may leave out what no new token looks back at.
        let first = match self.window {
            Some(window) if even => new_at[0].saturating_sub(window),
            _ => 0,
        };
        let end = match even {
            true => new_at[0] + new,
            false => self.stored.iter().copied().max().unwrap_or(0),
        };
        Context {
            key: self.keys().read(&self.key_layout, first, end - first),
            value: self.values().read(&self.value_layout, first, end - first),
            new_at: new_at.iter().map(|at| at - first).collect(),
        }
    }

    /// What positions add to the scores of a query that stands on the last of `len_kv` keys, as the cache holds them.
    ///
    /// A view of what was made for the whole capacity, so that a token needs no memory for it.
    pub(crate) fn bias_of_last_query(
        &mut self,
        position: &Position,
        len_kv: usize,
    ) -> Option<AttentionBias> {
        let made = self.last_query_bias.take();
        self.last_query_bias = made.filter(|bias| bias.dims()[3] >= len_kv).or_else(|| {
            let reach = self
                .window
                .map_or(usize::MAX, |window| window.saturating_add(1));
            let statistics = match self.key_layout.dtype {
                DType::F64 => FloatDType::F64,
                _ => FloatDType::F32,
            };
            position.bias_of_last_query(self.capacity().min(reach), statistics)
        });
        let bias = self.last_query_bias.clone()?;
        let [_, _, _, len] = bias.dims();
        Some(AttentionBias::dense(bias.narrow(3, len - len_kv, len_kv)))
    }

    /// Whether all sequences have as many tokens in the buffers.
    fn is_even(&self) -> bool {
        self.stored.iter().all(|&stored| stored == self.stored[0])
    }

    /// Panics unless the layer with these new keys, values and window is the one that the cache was made for, and no sequence
    /// gets too long.
    pub(crate) fn check(
        &self,
        key: &Tensor<4>,
        value: &Tensor<4>,
        counts: &[usize],
        window: Option<usize>,
    ) {
        for (name, tensor, layout) in [
            ("keys", key, &self.key_layout),
            ("values", value, &self.value_layout),
        ] {
            let [batch, heads, _, dim] = tensor.dims();
            assert!(
                batch == layout.batch,
                "KvCache: {name} of {batch} sequences do not fit a cache of {}",
                layout.batch
            );
            assert!(
                [heads, dim] == [layout.heads, layout.dim],
                "KvCache: {name} of {heads} heads of width {dim} do not fit a cache of {} heads of width {}: it was made \
                 for another layer",
                layout.heads,
                layout.dim
            );
            assert!(
                tensor.dtype() == layout.dtype,
                "KvCache: {name} in {:?} do not fit a cache in {:?}",
                tensor.dtype(),
                layout.dtype
            );
            // Devices are equal whether or not they record for autodiff.
            let device = tensor.device();
            assert!(
                device == layout.device && device.is_autodiff() == layout.device.is_autodiff(),
                "KvCache: {name} on {device:?} do not fit a cache on {:?}",
                layout.device
            );
        }
        let described = |window: Option<usize>| match window {
            Some(window) => format!("a window of {window}"),
            None => "no window".to_owned(),
        };
        assert!(
            window == self.window,
            "KvCache: a cache for {} does not fit a layer with {}: it was made for another layer",
            described(self.window),
            described(window)
        );
        let [batch, _, new, _] = key.dims();
        assert!(
            counts.len() == batch,
            "KvCache: {} counts of new tokens for {batch} sequences",
            counts.len()
        );
        for (b, (&count, length)) in counts.iter().zip(self.lengths()).enumerate() {
            assert!(
                count <= new,
                "KvCache: sequence {b} has {count} new tokens among {new}"
            );
            assert!(
                length + count <= self.max_len,
                "KvCache: sequence {b} has {length} tokens and cannot take {count} more: its max_len is {}",
                self.max_len
            );
        }
    }

    /// Makes room for `new` more tokens of every sequence.
    fn make_room(&mut self, new: usize, counts: &[usize]) {
        let longest = self.stored.iter().copied().max().unwrap_or(0);
        // Even sequences are written all at once, the shorter ones' padding included.
        let needed = match self.is_even() {
            true => longest + new,
            false => {
                let ends = self.stored.iter().zip(counts);
                ends.map(|(stored, count)| stored + count)
                    .max()
                    .unwrap_or(0)
            }
        };
        let capacity = self.capacity();
        if needed <= capacity {
            return;
        }
        let mut from = vec![0; self.batch()];
        let mut kept = longest;
        let mut grown = (2 * capacity).max(needed).min(self.max_len.max(needed));
        if let Some(window) = self.window {
            // What the window has left behind goes; twice the window is room for as many tokens as it takes to move.
            kept = kept.min(window);
            for (b, from) in from.iter_mut().enumerate() {
                *from = self.stored[b].saturating_sub(window);
                self.stored[b] -= *from;
                self.dropped[b] += *from;
            }
            let enough = window.saturating_mul(2).max(self.initial_len);
            grown = grown.min(enough.max(kept + new));
        }
        for (buffer, layout) in [
            (&mut self.keys, &self.key_layout),
            (&mut self.values, &self.value_layout),
        ] {
            *buffer = buffer
                .take()
                .map(|buffer| buffer.moved(layout, &from, kept, grown));
        }
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
