//! The caches of layers and stacks.

use crate::{KvCache, MixerState, ProjectedMemory, positions::indices};

const ONE_MEMORY: &str = "LayerCache: only one of the two caches to join has a memory";

/// The cache of a [`TransformerLayer`](crate::TransformerLayer): the keys and values of its tokens and, with
/// cross-attention, of the memory. Made by [`TransformerLayer::cache`](crate::TransformerLayer::cache).
///
/// The methods change tokens and memory alike. The methods of [`tokens`](Self::tokens) that add or move sequences do not change the memory.
#[derive(Clone, Debug)]
pub struct LayerCache<S = KvCache> {
    /// Keys and values of the tokens so far, or what else the layer's mixer keeps of them.
    pub tokens: S,
    /// Keys and values of the memory, by [`CrossAttention::project_memory`](crate::CrossAttention::project_memory), if the layer has
    /// cross-attention. Absent at first.
    pub memory: Option<ProjectedMemory>,
}

impl<S: MixerState> LayerCache<S> {
    /// Sequence `b` becomes what sequence `rows[b]` was, including its memory, which is copied: [`KvCache::reorder`].
    pub fn reorder(&mut self, rows: &[usize]) {
        let stays = rows.iter().copied().eq(0..self.tokens.lengths().len());
        self.tokens.reorder(rows);
        if let (false, Some(memory)) = (stays, &mut self.memory) {
            *memory = memory.select(indices(rows.iter().copied(), &memory.device()));
        }
    }

    /// Each of `rows` sequences becomes what the only sequence was: [`KvCache::fork`]. The memory is copied.
    pub fn fork(&mut self, rows: usize) {
        self.tokens.fork(rows);
        if let Some(memory) = &mut self.memory {
            *memory = memory.select(indices(vec![0; rows], &memory.device()));
        }
    }

    /// Appends the sequences of `other`, with their memory: [`KvCache::join`]. If the memories differ in length, the
    /// shorter one is padded with keys of zeros at its end, which a mask of the memory must hide. The memory of a cache without sequences does not
    /// count. Panics also when only one of two caches with sequences has a memory, and as [`ProjectedMemory::join`] does.
    pub fn join(&mut self, other: Self) {
        if let Some(reason) = self.refuses_join(&other) {
            panic!("{reason}");
        }
        let have_sequences = [&*self, &other].map(Self::has_sequences);
        self.memory = match (have_sequences, self.memory.take(), other.memory) {
            ([true, true], Some(own), Some(others)) => Some(own.join(others)),
            ([true, false], own, _) => own,
            ([false, true], _, others) => others,
            (_, own, others) => own.or(others),
        };
        self.tokens.join(other.tokens);
    }

    /// Why [`join`](Self::join) would panic, if it would.
    fn refuses_join(&self, other: &Self) -> Option<String> {
        let both_have_sequences = self.has_sequences() && other.has_sequences();
        let of_memory = match (&self.memory, &other.memory) {
            _ if !both_have_sequences => None,
            (Some(own), Some(others)) => own.refuses_join(others),
            (None, None) => None,
            _ => Some(ONE_MEMORY.to_owned()),
        };
        of_memory.or_else(|| self.tokens.refuses_join(&other.tokens))
    }

    fn has_sequences(&self) -> bool {
        !self.tokens.lengths().is_empty()
    }
}

/// The cache of a [`TransformerStack`](crate::TransformerStack): for every layer that has its own, the keys and values of its tokens, or what else
/// its mixer keeps of them, and those of the memory if the stack has cross-attention. Made by
/// [`TransformerStack::cache`](crate::TransformerStack::cache). A method that changes the cache calls that of [`KvCache`], which documents the
/// cost, or of another [`MixerState`] for every layer, and panics if a layer refuses.
///
/// Decoding in all its steps; the [crate's page](crate#speculative-decoding) has speculative decoding with tokens.
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use burn_attn::{KvCacheConfig, LayerInput, TransformerStackConfig};
///
/// let device = Device::default();
/// let model = TransformerStackConfig::causal(32, 64, 4, 2).init(&device);
/// let random = |batch, len| LayerInput::new(Tensor::random([batch, len, 32], Distribution::Default, &device));
/// let config = KvCacheConfig::new(100);
///
/// // Two prompts, of 6 and 3 tokens, in one padded batch, then one token of each.
/// let mut cache = model.cache(2, &config);
/// model.forward_cached(random(2, 6).lengths(&[6, 3]), &mut cache);
/// model.forward_cached(random(2, 1), &mut cache);
/// assert_eq!(cache.lengths(), [7, 4]);
///
/// // Four tokens at once, of which the first sequence keeps three and the second none.
/// model.forward_cached(random(2, 4), &mut cache);
/// cache.truncate(&[10, 4]);
///
/// // A third request joins the batch, then the first one leaves it.
/// let mut new = model.cache(1, &config);
/// model.forward_cached(random(1, 5), &mut new);
/// cache.join(new);
/// cache.reorder(&[1, 2]);
/// assert_eq!(cache.lengths(), [4, 5]);
/// model.forward_cached(random(2, 1), &mut cache);
/// ```
#[derive(Clone, Debug)]
pub struct TransformerCache<S = KvCache> {
    pub(super) layers: Vec<LayerCache<S>>,
    /// Length of each memory without padding; absent before there is a memory.
    pub(super) memory_lengths: Option<Vec<usize>>,
}

impl<S: MixerState> TransformerCache<S> {
    /// Number of tokens of each sequence so far: `[batch]`.
    pub fn lengths(&self) -> Vec<usize> {
        let first = self.layers.first();
        first.map_or_else(Vec::new, |layer| layer.tokens.lengths())
    }

    /// Memory held for the tokens (bytes): keys, values and position biases, or the states of other mixers.
    pub fn bytes(&self) -> usize {
        self.layers.iter().map(|layer| layer.tokens.bytes()).sum()
    }

    /// The caches, those of the first layers first; a layer with shared keys and values has none.
    pub fn layers(&self) -> &[LayerCache<S>] {
        &self.layers
    }

    /// Sequence `b` becomes what sequence `rows[b]` was: [`KvCache::reorder`]. There may be more or fewer rows than before. A prompt that
    /// many rows have in common is read once, and, where there are keys and values, held once after [`fork`](Self::fork).
    pub fn reorder(&mut self, rows: &[usize]) {
        for layer in &mut self.layers {
            layer.reorder(rows);
        }
        if let Some(lengths) = &mut self.memory_lengths {
            *lengths = rows.iter().map(|&row| lengths[row]).collect();
        }
    }

    /// Each of `rows` sequences becomes what the only sequence was: [`KvCache::fork`], which holds the tokens once in layers without a window. States
    /// of other mixers are copied, unless they say otherwise.
    pub fn fork(&mut self, rows: usize) {
        for layer in &mut self.layers {
            layer.fork(rows);
        }
        if let Some(lengths) = &mut self.memory_lengths {
            *lengths = vec![lengths[0]; rows];
        }
    }

    /// Appends the sequences of `other`, with their memory: [`LayerCache::join`]. Panics also when the numbers of layers differ.
    pub fn join(&mut self, other: Self) {
        let (layers, others) = (self.layers.len(), other.layers.len());
        assert!(
            layers == others,
            "TransformerCache: a cache of {others} layers cannot join one of {layers}"
        );
        let mut both = self.layers.iter().zip(&other.layers);
        if let Some(reason) = both.find_map(|(own, others)| own.refuses_join(others)) {
            panic!("{reason}");
        }
        for (own, others) in self.layers.iter_mut().zip(other.layers) {
            own.join(others);
        }
        let lengths = [self.memory_lengths.take(), other.memory_lengths];
        let has_memory = lengths.iter().any(Option::is_some);
        let lengths: Vec<usize> = lengths.into_iter().flatten().flatten().collect();
        // Fewer where sequences without a memory were joined by none that had one.
        let is_of_all = lengths.len() == self.lengths().len();
        self.memory_lengths = (has_memory && is_of_all).then_some(lengths);
    }

    /// Length of the memory, with padding; 0 without one.
    pub(super) fn memory_len(&self) -> usize {
        let memory = self.layers.first().and_then(|layer| layer.memory.as_ref());
        memory.map_or(0, ProjectedMemory::len)
    }

    /// Makes room for `new` more tokens of every sequence: [`KvCache::reserve`], which says what [`truncate`](Self::truncate) can then undo. States that
    /// do not grow need no room.
    pub fn reserve(&mut self, new: usize) {
        for layer in &mut self.layers {
            layer.tokens.reserve(new);
        }
    }

    /// Whether [`truncate`](Self::truncate) to these lengths would not panic.
    pub fn can_truncate(&self, lengths: &[usize]) -> bool {
        let mut layers = self.layers.iter();
        layers.all(|layer| layer.tokens.refuses_truncation(lengths).is_none())
    }

    /// Keeps only the first `lengths[b]` tokens of each sequence `b`, and the memory: [`KvCache::truncate`], or, of another mixer,
    /// [`MixerState::truncate`], which may keep all or nothing. Panics before any layer is changed.
    pub fn truncate(&mut self, lengths: &[usize]) {
        self.check(|tokens| tokens.refuses_truncation(lengths));
        for layer in &mut self.layers {
            layer.tokens.truncate(lengths);
        }
    }

    /// Panics with the first reason against a change, before a layer is changed.
    pub(super) fn check(&self, refuses: impl Fn(&S) -> Option<String>) {
        let mut layers = self.layers.iter();
        if let Some(reason) = layers.find_map(|layer| refuses(&layer.tokens)) {
            panic!("{reason}");
        }
    }

    /// Removes all tokens. The capacity stays, and so does the memory until [`TransformerStack::cache_memory`](crate::TransformerStack::cache_memory) replaces it.
    pub fn reset(&mut self) {
        for layer in &mut self.layers {
            layer.tokens.reset();
        }
    }
}

impl TransformerCache {
    /// Keeps the first `lengths[b]` tokens of each sequence `b` and, of those that follow, `then[b]`: [`KvCache::keep`].
    pub fn keep(&mut self, lengths: &[usize], then: &[&[usize]]) {
        self.check(|tokens| tokens.refuses_keeping(lengths, then));
        for layer in &mut self.layers {
            layer.tokens.keep(lengths, then);
        }
    }
}
