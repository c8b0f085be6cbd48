//! The keys and values of the tokens so far, so that the next token costs the work of one token.

mod append;
mod bias;
mod buffer;
mod check;
mod config;
mod fork;
mod join;
mod keep;
mod position_bias;
mod prefix;
mod sinks;
mod token_positions;

use burn::tensor::{DType, Device, Tensor};

use crate::{error::expect_valid, positions::indices};
pub(crate) use append::Appended;
use buffer::{Buffer, Layout, read};
pub use config::{CacheStorage, KvCacheConfig};
use position_bias::PositionBias;
use prefix::Prefix;

/// The keys and values of one attention layer, for its `n_kv_heads` heads.
///
/// The sequences of the batch may differ in length: the tokens of each are at the front of its row, with free room after them.
/// Full buffers double. The cache of a layer with a window keeps what the window reaches and drops the rest. Keys and values have the
/// dtype of the weights, or that of the first keys if the weights are quantised.
///
/// # Decoding
///
/// `forward_cached` of a causal module reads any number of new tokens: a whole prompt, then one token at a time. Except with 8 bits or sink
/// tokens, its output equals what `forward` of the whole sequences gives for these tokens. Prompts of different lengths start at the front of their rows, with padding
/// after them, which [`lengths`](crate::AttentionContext::lengths) of the input tell apart. The output at padding is meaningless.
///
/// A call panics when the input has an offset, its mask, bias, lengths or positions do not fit, a token is beyond a rotary table, or the
/// cache is full, has another window, has latent vectors where the layer has keys and values or the reverse, or differs from the new keys and
/// values in batch size, heads, widths, dtype or device (with or without autodiff). It also does for positions on several axes beside anything
/// that counts distances (a window, ALiBi, a relative bias), for positions whose window reaches tokens that have been dropped, and for masks, biases, functions or positions beside sink tokens. Nothing
/// else is compared: layers of equal sizes cannot be told apart. Refused tokens leave the cache as it was, but where a bias by distances has no
/// number for a given position, positions are more than 2³⁰ apart, or a function returns what it may not: [`truncate`](Self::truncate) removes
/// them.
///
/// It takes `8 · batch · len · d_model²` operations for the projections and `4 · batch · len · len_kv · d_model` for the attention,
/// where `len_kv` counts the tokens so far, within the window if there is one. Beyond the cache, on flex, one token per sequence takes no
/// memory that grows with `len_kv`, except with ALiBi or a relative bias after [`fork`](Self::fork), in layers that share a cache but not their
/// learned slopes, or where distances count between given positions, which takes what
/// [`at_positions`](crate::AttentionOptions::at_positions) says. Several tokens take `batch · n_kv_heads · len_kv` bytes if some are padding, and up to
/// `2 · n_heads · (len + len_kv)` numbers with ALiBi or a relative bias. An 8-bit cache decodes what a call reads, at least
/// `batch · n_kv_heads · len_kv · (d_head + d_value_head)` floats; ndarray copies as many. Calls for which a backend has no kernel, such
/// as those on GPUs with functions, in f64 or with heads wider than 256, hold at least `batch · n_heads · len_kv` scores.
///
/// # Masks and biases
///
/// Masks and biases of an input are for its tokens as queries and all tokens so far as keys: key `j` of a sequence is its token `j`, also when a
/// window has dropped some. So the last axis of a dense mask is `longest + len`, where `longest` is the most tokens that a sequence has in the
/// cache; what it says of keys that a shorter sequence does not have is not read. The module stays causal: a mask hides more. Positions are
/// those of the cache, whatever a mask hides: padding on the left, hidden by [`AttentionMask::padding`](crate::AttentionMask::padding),
/// counts. One that starts at the first query, such as a table of blocks, starts at the first new token.
///
/// A tree of drafts, each of which sees its ancestors, at the position after that of its parent:
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use burn_attn::{AttentionMask, KvCacheConfig, SelfAttentionConfig, SelfAttentionInput};
///
/// let device = Device::default();
/// let attention = SelfAttentionConfig::new(32, 4).with_causal(true).init(&device);
/// let random = |len| Tensor::<3>::random([1, len, 32], Distribution::Default, &device);
/// let mut cache = attention.cache(1, &KvCacheConfig::new(100));
/// attention.forward_cached(SelfAttentionInput::new(random(2)), &mut cache);
/// // Two tokens in the cache. Of three drafts, the second and the third follow the first.
/// let visible = [[true, true, true, false, false], [true, true, true, true, false], [true, true, true, false, true]];
/// let visible = Tensor::from_data([[visible]], &device);
/// let drafts = SelfAttentionInput::new(random(3)).mask(AttentionMask::visible(visible)).positions(vec![vec![2, 3, 3]]);
/// assert_eq!(attention.forward_cached(drafts, &mut cache).dims(), [1, 3, 32]);
/// ```
///
/// # Sink tokens
///
/// With [`sink_tokens`](KvCacheConfig::sink_tokens), a text may go on without end in a cache of a fixed size: where new tokens would not
/// fit into `max_len`, the oldest are dropped, except for the first ones, on which models put the attention that they need nowhere else.
/// The tokens that are left take the positions `0 ..` in the order in which they came, so that no position is beyond `max_len`. A call
/// sees what is left when its own tokens are in, and gives what `forward` would give for the inputs of these tokens. One layer sees
/// `max_len` tokens; more layers pass on something of those before.
///
/// Such a cache is for modules without a window. It stores keys before their norm and rotation, and so normalises and rotates all of them in
/// every call. When it is full, a call also copies what is kept. Masks, biases, functions and positions in a call are refused, and so are more than
/// `max_len − sink_tokens` tokens at once where some have to be dropped. [`truncate`](Self::truncate) does not bring back what later
/// tokens have dropped.
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use burn_attn::{KvCacheConfig, SelfAttentionConfig, SelfAttentionInput};
///
/// let device = Device::default();
/// let attention = SelfAttentionConfig::new(32, 4).with_causal(true).init(&device);
/// let mut cache = attention.cache(1, &KvCacheConfig::new(8).with_sink_tokens(4));
/// for _ in 0..100 {
///     let token = Tensor::random([1, 1, 32], Distribution::Default, &device);
///     attention.forward_cached(SelfAttentionInput::new(token), &mut cache);
/// }
/// assert_eq!((cache.lengths(), cache.capacity()), (vec![100], 8));
/// ```
///
/// Xiao et al., "Efficient streaming language models with attention sinks" (arXiv:2309.17453), section 3.2.
///
/// # Cost
///
/// `batch · n_kv_heads · capacity · (d_head + d_value_head)` numbers. Adding a token writes those of one position, in
/// place unless the tensors are shared: do not keep clones of a cache that is in use. Sequences of unequal lengths are written one after
/// the other, each by operations of its own.
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
/// [`TransformerCache`](crate::TransformerCache) shows sequences that join, leave and are truncated.
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
    keys: Buffer,
    values: Buffer,
    /// First tokens of all sequences, which are not in the buffers.
    prefix: Option<Prefix>,
    tokens: Vec<Tokens>,
    max_len: usize,
    initial_capacity: usize,
    /// Whether the dtype is known. If not, the first keys decide.
    dtype_is_fixed: bool,
    /// How many earlier tokens a token sees, if there is a limit.
    window: Option<usize>,
    /// The number of sink tokens: first tokens that stay when the cache drops the oldest others.
    sink_tokens: Option<usize>,
    /// The positions of the tokens in the buffers, if any was given one that is not its place.
    positions: Option<Vec<Vec<usize>>>,
    bias: PositionBias,
}

/// The tokens of one sequence.
#[derive(Clone, Copy, Debug, Default)]
struct Tokens {
    /// In the buffers.
    stored: usize,
    /// Earlier ones, which are not: they have been dropped, or are in the shared prefix.
    dropped: usize,
    /// The position after the last of those that have been dropped.
    passed: usize,
}

impl Tokens {
    fn count(self) -> usize {
        self.stored + self.dropped
    }
}

impl KvCache {
    /// For keys and values of this many heads of this width, on a device and in the dtype of the keys, if it is known before there are any.
    pub(crate) fn new(
        batch: usize,
        [keys, values]: [(usize, usize); 2],
        (device, known_dtype): (Device, Option<DType>),
        window: Option<usize>,
        config: &KvCacheConfig,
    ) -> Self {
        expect_valid(config.validate());
        assert!(
            config.storage == CacheStorage::Float || device.supports_dtype(DType::I8),
            "KvCache: storage Int8 needs 8-bit integers, which {device:?} does not have"
        );
        let default = || device.settings().float_dtype.into();
        let dtype = known_dtype.unwrap_or_else(default);
        let capacity = config.initial_capacity.min(config.max_len);
        let buffer = |(heads, dim)| {
            let layout = Layout {
                batch,
                heads,
                dim,
                dtype,
                device: device.clone(),
                storage: config.storage,
            };
            Buffer::new(layout, capacity)
        };
        Self {
            keys: buffer(keys),
            values: buffer(values),
            prefix: None,
            tokens: vec![Tokens::default(); batch],
            max_len: config.max_len,
            initial_capacity: capacity,
            dtype_is_fixed: known_dtype.is_some(),
            window,
            sink_tokens: config.sink_tokens,
            positions: None,
            bias: PositionBias::default(),
        }
    }

    /// This cache, without tokens yet, whose values are the last numbers of the keys and are not stored a second time.
    pub(crate) fn with_values_in_keys(mut self) -> Self {
        self.values = Buffer::elsewhere(self.values.layout, self.initial_capacity);
        self
    }

    /// Takes the `dtype` of the first keys, if the layer did not know the dtype.
    pub(crate) fn fix_dtype(&mut self, dtype: DType) {
        if self.dtype_is_fixed {
            return;
        }
        self.dtype_is_fixed = true;
        for buffer in [&mut self.keys, &mut self.values] {
            if buffer.layout.dtype != dtype {
                buffer.layout.dtype = dtype;
                // Not the initial capacity: `reserve` may come before the first keys.
                *buffer = buffer.emptied(buffer.layout.batch, buffer.capacity);
            }
        }
    }

    /// Number of tokens of each sequence so far, including those that have been dropped: `[batch]`.
    pub fn lengths(&self) -> Vec<usize> {
        self.tokens.iter().map(|tokens| tokens.count()).collect()
    }

    /// Number of sequences.
    pub fn batch(&self) -> usize {
        self.tokens.len()
    }

    /// Number of tokens per sequence that fit before the buffers grow, beside those that all share after [`fork`](Self::fork).
    pub fn capacity(&self) -> usize {
        self.keys.capacity
    }

    /// Memory held (bytes).
    pub fn bytes(&self) -> usize {
        let of_prefix = self.prefix.as_ref().map_or(0, Prefix::bytes);
        of_prefix + self.keys.bytes() + self.values.bytes() + self.bias.bytes()
    }

    /// Sequence `b` becomes what sequence `rows[b]` was. Rows may be repeated or left out, so the batch may grow or shrink: beam
    /// search, several samples of one prompt, finished requests. It costs a copy of the result, or nothing if every sequence keeps its
    /// place. Panics when a row is not below [`batch`](Self::batch).
    pub fn reorder(&mut self, rows: &[usize]) {
        let batch = self.batch();
        if let Some(row) = rows.iter().find(|&&row| row >= batch) {
            panic!("KvCache: cannot reorder to sequence {row}: there are {batch} sequences");
        }
        if rows.iter().copied().eq(0..batch) {
            return;
        }
        self.tokens = rows.iter().map(|&row| self.tokens[row]).collect();
        if let Some(positions) = &mut self.positions {
            *positions = rows.iter().map(|&row| positions[row].clone()).collect();
        }
        self.forget_places();
        if rows.is_empty() {
            self.keys = self.keys.emptied(0, self.initial_capacity);
            self.values = self.values.emptied(0, self.initial_capacity);
            self.prefix = None;
            return;
        }
        let items = indices(rows.iter().copied(), &self.keys.layout.device);
        self.keys.select(items.clone());
        self.values.select(items);
    }

    /// Whether [`truncate`](Self::truncate) to these lengths would not panic.
    pub fn can_truncate(&self, lengths: &[usize]) -> bool {
        self.refuses_truncation(lengths).is_none()
    }

    /// Why the sequences cannot be truncated to these lengths, if they cannot.
    pub(crate) fn refuses_truncation(&self, lengths: &[usize]) -> Option<String> {
        let (count, batch) = (lengths.len(), self.batch());
        if count != batch {
            return Some(format!("KvCache: {count} lengths for {batch} sequences"));
        }
        let mut sequences = self.tokens.iter().zip(lengths).enumerate();
        sequences.find_map(|(b, (tokens, &length))| {
            let (count, dropped) = (tokens.count(), tokens.dropped);
            if length > count {
                return Some(format!(
                    "KvCache: sequence {b} has {count} tokens and cannot be truncated to {length}"
                ));
            }
            if let Some(sinks) = self.sink_tokens
                && length > sinks
                && dropped > 0
                && length < dropped + sinks
            {
                let reached = dropped + sinks;
                return Some(format!(
                    "KvCache: sequence {b} cannot be truncated to {length} tokens: of the first {reached}, only {sinks} have been kept"
                ));
            }
            // The first token in the window of the next token.
            let needed = length.saturating_sub(self.window.unwrap_or(usize::MAX));
            (length > 0 && dropped > needed && self.window.is_some()).then(|| {
                format!(
                    "KvCache: sequence {b} cannot be truncated to {length} tokens: its window would need tokens from \
                     {needed} on, but those before {dropped} have been dropped"
                )
            })
        })
    }

    /// Keeps only the first `lengths[b]` tokens of each sequence `b`: undoes a rejected draft, for example. The
    /// [crate's page](crate#speculative-decoding) shows speculative decoding as a whole. It costs nothing, because the next tokens
    /// overwrite the removed ones, unless some of these are shared after [`fork`](Self::fork): then the shared tokens are copied for every
    /// sequence.
    ///
    /// # Panics
    ///
    /// When there is not one length per sequence, a sequence has fewer tokens, the window of the next token would need tokens
    /// that have been dropped, or a sequence would end among tokens that have been dropped beside sink tokens. A length of 0 is always possible.
    /// So is, without sink tokens, a length that the sequence had at the last [`reserve`](Self::reserve), or has reached since within the
    /// reserved room.
    pub fn truncate(&mut self, lengths: &[usize]) {
        if let Some(reason) = self.refuses_truncation(lengths) {
            panic!("{reason}");
        }
        if lengths.iter().all(|&length| length == 0) {
            return self.reset();
        }
        self.free_prefix(lengths);
        for (tokens, &length) in self.tokens.iter_mut().zip(lengths) {
            let is_sinks = self.sink_tokens.is_some_and(|sinks| length <= sinks);
            if length == 0 || is_sinks {
                *tokens = Tokens::default();
            }
            tokens.stored = length - tokens.dropped;
        }
        for (positions, tokens) in self.positions.iter_mut().flatten().zip(&self.tokens) {
            positions.truncate(tokens.stored);
        }
        self.forget_places();
    }

    /// Removes all tokens and keeps the capacity, for other sequences or after the parameters have changed.
    pub fn reset(&mut self) {
        self.tokens.fill(Tokens::default());
        self.positions = None;
        self.prefix = None;
    }

    /// Whether all sequences have the same number of tokens in the buffers.
    fn is_even(&self) -> bool {
        let mut both = self.tokens.iter().zip(self.tokens.iter().skip(1));
        both.all(|(tokens, next)| tokens.stored == next.stored)
    }

    fn most_stored(&self) -> usize {
        let stored = self.tokens.iter().map(|tokens| tokens.stored);
        stored.max().unwrap_or(0)
    }

    /// Keys `[batch, n_kv_heads, capacity, d_head]` and values `[batch, n_kv_heads, capacity, d_value_head]`.
    pub(crate) fn whole(&self) -> [Tensor<4>; 2] {
        read(&self.keys, &self.values, (0, self.capacity()))
    }
}
