//! How stacks decode: they read each token once, and a memory once.

use burn::tensor::{Int, Tensor};
use burn_attn_ops::AttentionMask;

use super::{LayerContext, TransformerStack};
use crate::{KvCache, KvCacheConfig, ProjectedMemory, positions::indices};

/// What a [`TransformerLayer`](crate::TransformerLayer) keeps while it decodes.
#[derive(Clone, Debug)]
pub struct LayerCache {
    pub(super) tokens: KvCache,
    /// Keys and values of the memory, for cross-attention.
    pub(super) memory: Option<ProjectedMemory>,
}

impl LayerCache {
    /// Keys and values of the tokens so far.
    pub fn tokens(&self) -> &KvCache {
        &self.tokens
    }

    /// Sequence `b` becomes what sequence `rows[b]` was, its memory too; see [`KvCache::reorder`].
    ///
    /// # Panics
    ///
    /// When there is no such sequence.
    pub fn reorder(&mut self, rows: &[usize]) {
        let stays = rows.iter().copied().eq(0..self.tokens.batch());
        self.tokens.reorder(rows);
        if let (false, Some(memory)) = (stays, &mut self.memory) {
            *memory = memory.select(indices(rows.iter().copied(), &memory.device()));
        }
    }

    /// The sequences of `other` come behind those of this cache, with their memory; see [`KvCache::join`]. Where memories differ in length,
    /// the shorter gets keys of zeros at its end, which a mask of the memory must hide.
    ///
    /// # Panics
    ///
    /// As [`KvCache::join`], and when only one has a memory.
    pub fn join(&mut self, other: Self) {
        self.memory = match (self.memory.take(), other.memory) {
            (Some(own), Some(others)) => Some(own.join(others)),
            (None, None) => None,
            _ => panic!(
                "LayerCache: of two caches that join, one has a memory and the other none: they were made for different layers"
            ),
        };
        self.tokens.join(other.tokens);
    }

    /// Forgets all but the first `lengths[b]` tokens of each sequence `b`; the memory stays. See [`KvCache::truncate`].
    ///
    /// # Panics
    ///
    /// As [`KvCache::truncate`].
    pub fn truncate(&mut self, lengths: &[usize]) {
        self.tokens.truncate(lengths);
    }

    /// Forgets all tokens; the memory stays.
    pub fn reset(&mut self) {
        self.tokens.reset();
    }
}

/// What a [`TransformerStack`] keeps while it decodes: the keys and values of every layer, of its own tokens and of a memory.
#[derive(Clone, Debug)]
pub struct TransformerCache {
    layers: Vec<LayerCache>,
    /// Real positions of each memory, `[batch]`.
    memory_lengths: Option<Tensor<1, Int>>,
}

impl TransformerCache {
    /// Tokens of each sequence so far.
    pub fn lengths(&self) -> Vec<usize> {
        let first = self.layers.first();
        first.map_or_else(Vec::new, |layer| layer.tokens.lengths())
    }

    /// Memory held for the tokens: their keys and values, and what positions add (bytes).
    pub fn bytes(&self) -> usize {
        self.layers.iter().map(|layer| layer.tokens.bytes()).sum()
    }

    /// The caches of the layers, first to last.
    pub fn layers(&self) -> &[LayerCache] {
        &self.layers
    }

    /// Sequence `b` becomes what sequence `rows[b]` was, as beam search needs it; there may be more or fewer than before, so that a
    /// prompt that many rows have in common is read once. See [`KvCache::reorder`].
    ///
    /// # Panics
    ///
    /// When there is no such sequence.
    pub fn reorder(&mut self, rows: &[usize]) {
        let stays = rows.iter().copied().eq(0..self.lengths().len());
        for layer in &mut self.layers {
            layer.reorder(rows);
        }
        if let Some(lengths) = self.memory_lengths.as_mut().filter(|_| !stays) {
            let items = indices(rows.iter().copied(), &lengths.device());
            *lengths = lengths.clone().select(0, items);
        }
    }

    /// The sequences of `other` come behind those of this cache, with their memory: requests join a running batch. See [`KvCache::join`].
    ///
    /// # Panics
    ///
    /// As [`KvCache::join`], and when the two are caches of stacks with different numbers of layers, or only one has a memory.
    pub fn join(&mut self, other: Self) {
        assert!(
            self.layers.len() == other.layers.len(),
            "TransformerCache: a cache of {} layers cannot join one of {}",
            other.layers.len(),
            self.layers.len()
        );
        let lengths = (self.memory_lengths.take(), other.memory_lengths);
        for (own, others) in self.layers.iter_mut().zip(other.layers) {
            own.join(others);
        }
        self.memory_lengths = match lengths {
            (Some(own), Some(others)) if own.dims() == [0] => Some(others),
            (Some(own), Some(others)) if others.dims() == [0] => Some(own),
            (Some(own), Some(others)) => Some(Tensor::cat(vec![own, others], 0)),
            (own, others) => own.or(others),
        };
    }

    /// Forgets all but the first `lengths[b]` tokens of each sequence `b`; its memory stays. See [`KvCache::truncate`].
    ///
    /// # Panics
    ///
    /// As [`KvCache::truncate`].
    pub fn truncate(&mut self, lengths: &[usize]) {
        for layer in &mut self.layers {
            layer.tokens.truncate(lengths);
        }
    }

    /// Forgets all tokens and keeps the room that they took. The encoder's memory stays: for other sources make another cache.
    pub fn reset(&mut self) {
        for layer in &mut self.layers {
            layer.tokens.reset();
        }
    }
}

impl TransformerStack {
    /// An empty cache for [`forward_cached`](Self::forward_cached).
    ///
    /// # Panics
    ///
    /// When a size of `config` is zero, or its `max_len` is more than the positions of a rotary encoding; when the layers have
    /// cross-attention ([`cache_with_memory`](Self::cache_with_memory)).
    pub fn cache(&self, batch: usize, config: &KvCacheConfig) -> TransformerCache {
        self.new_cache(batch, None, config)
    }

    /// [`cache`](Self::cache) of a stack with cross-attention over a memory, whose keys and values are projected here, once.
    ///
    /// # Shapes
    ///
    /// - `memory`: `[batch, len_kv, d_memory]`
    /// - `memory_lengths`: `[batch]`
    ///
    /// # Panics
    ///
    /// As [`cache`](Self::cache), and when the layers have no cross-attention or the memory does not fit it.
    pub fn cache_with_memory(
        &self,
        memory: Tensor<3>,
        memory_lengths: Tensor<1, Int>,
        config: &KvCacheConfig,
    ) -> TransformerCache {
        let [batch, _, _] = memory.dims();
        let mut cache = self.new_cache(batch, Some(memory), config);
        cache.memory_lengths = Some(memory_lengths);
        cache
    }

    fn new_cache(
        &self,
        batch: usize,
        memory: Option<Tensor<3>>,
        config: &KvCacheConfig,
    ) -> TransformerCache {
        // A layer by itself finds out with the token that has no position; in a stack, layers may have taken it by then.
        let positions = self.rotary_len().unwrap_or(usize::MAX);
        assert!(
            config.max_len <= positions,
            "TransformerStack: a cache of max_len {} is longer than the {positions} positions of the rotary table",
            config.max_len
        );
        let layers = self.layers_in_order();
        TransformerCache {
            layers: layers
                .map(|layer| layer.cache(batch, memory.clone(), config))
                .collect(),
            memory_lengths: None,
        }
    }

    /// The states of the next tokens of each sequence, which join the cache: the same as [`forward`](Self::forward) of the whole
    /// sequences has there.
    ///
    /// Sequence `b` has `lengths[b]` new tokens; what stands behind them is padding.
    ///
    /// # Shapes
    ///
    /// - `x`, output: `[batch, len, d_model]`
    ///
    /// # Panics
    ///
    /// When a layer is not causal, or the cache is another stack's, of another batch or dtype, or full.
    pub fn forward_cached(
        &self,
        x: Tensor<3>,
        lengths: &[usize],
        cache: &mut TransformerCache,
    ) -> Tensor<3> {
        self.check_cache(cache);
        let mut context = LayerContext::new().lengths(lengths);
        if let Some(lengths) = &cache.memory_lengths {
            context = context.memory_mask(AttentionMask::key_lengths(lengths.clone()));
        }
        let mut caches = cache.layers.iter_mut();
        let states = self.fold(x, &context, |layer, x, context| {
            let cache = caches.next().expect("as many caches as layers");
            layer.forward_cached(x, context, cache).states
        });
        self.finish(states)
    }

    /// Panics unless there is a cache for every layer, and all of them have the same tokens.
    fn check_cache(&self, cache: &TransformerCache) {
        let (caches, layers) = (cache.layers.len(), self.layers_in_order().count());
        assert!(
            caches == layers,
            "TransformerStack: a cache of {caches} layers does not fit a stack of {layers}"
        );
        let Some((first, rest)) = cache.layers.split_first() else {
            return;
        };
        for (layer, cache) in (1..).zip(rest) {
            assert!(
                cache.tokens.agrees_with(&first.tokens),
                "TransformerStack: the cache of layer {layer} has {:?} tokens, that of layer 0 has {:?}",
                cache.tokens.lengths(),
                first.tokens.lengths()
            );
        }
    }
}
