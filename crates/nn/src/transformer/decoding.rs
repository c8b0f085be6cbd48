//! Decoding by stacks, which read each token once, and the memory once.

use burn::tensor::Tensor;

use super::{LayerInput, TransformerCache, TransformerStack};
use crate::{KvCacheConfig, MixerCall, MixerState, TokenMixer, positions::check_lengths};

impl<M: TokenMixer> TransformerStack<M> {
    /// An empty cache for [`forward_cached`](Self::forward_cached). A stack with cross-attention needs a memory in it:
    /// [`cache_memory`](Self::cache_memory). Layers without keys and values ignore what `config` says of them. Panics when `max_len` is beyond
    /// a rotary table of the stack, and as [`TokenMixer::cache`] does: [`SelfAttention::cache`](crate::SelfAttention::cache).
    pub fn cache(&self, batch: usize, config: &KvCacheConfig) -> TransformerCache<M::State> {
        for position in &self.positions {
            position.check_max_len("TransformerStack", config.max_len);
        }
        let own = self.layers_in_order().zip(&self.source_of);
        let mut layers = Vec::new();
        for (layer, &source) in own {
            // Others attend to the keys and values of an earlier layer.
            if source == layers.len() {
                layers.push(layer.cache(batch, config));
            }
        }
        TransformerCache {
            layers,
            memory_lengths: None,
        }
    }

    /// Gives the cache of a stack with cross-attention its memory, `[batch, len_kv, d_memory]`, in place of an earlier one. The keys and
    /// values are projected here, once.
    ///
    /// The memory of sequence `b` has `lengths[b]` tokens; what follows is padding, which no query sees.
    ///
    /// # Panics
    ///
    /// When the layers have no cross-attention, the cache has another number of layers or sequences, or the memory or its lengths do
    /// not fit.
    ///
    /// ```
    /// use burn::tensor::{Device, Distribution, Tensor};
    /// use burn_attn::{KvCacheConfig, TransformerStackConfig};
    ///
    /// let device = Device::default();
    /// let decoder = TransformerStackConfig::decoder(32, 64, 4, 2).with_causal(true).init(&device);
    /// let random = |len| Tensor::<3>::random([2, len, 32], Distribution::Default, &device);
    /// let mut cache = decoder.cache(2, &KvCacheConfig::new(100));
    /// decoder.cache_memory(random(7), &[7, 4], &mut cache);
    /// for _ in 0..3 {
    ///     assert_eq!(decoder.forward_cached(random(1), &mut cache).dims(), [2, 1, 32]);
    /// }
    /// ```
    pub fn cache_memory(
        &self,
        memory: Tensor<3>,
        lengths: &[usize],
        cache: &mut TransformerCache<M::State>,
    ) {
        self.check_cache(cache);
        let ([batch, len, _], rows) = (memory.dims(), cache.lengths().len());
        assert!(
            batch == rows,
            "TransformerStack: a memory of {batch} sequences does not fit a cache of {rows}"
        );
        check_lengths("TransformerStack", lengths, "a memory of ", [batch, len]);
        let projected = self.layers_in_order().map(|layer| {
            let attention = layer.cross_attention.as_ref().unwrap_or_else(|| {
                panic!("TransformerStack: a memory was given to layers without cross-attention")
            });
            attention.project_memory(memory.clone())
        });
        let projected: Vec<_> = projected.collect();
        cache.memory_lengths = Some(lengths.to_vec());
        for (layer, memory) in cache.layers.iter_mut().zip(projected) {
            layer.memory = Some(memory);
        }
    }

    /// As [`forward`](Self::forward), for the next tokens of each sequence, which are added to the [cache](crate::KvCache#decoding).
    ///
    /// # Panics
    ///
    /// As [`TransformerLayer::forward_cached`](crate::TransformerLayer::forward_cached), and when the cache has another number of
    /// layers, its layers have unequal numbers of tokens, or lengths of the memory are given beside those of the cache. Nothing else is
    /// compared: stacks of equal sizes cannot be told apart.
    ///
    /// Where a layer has no room for the tokens, no layer has read them. Whatever else a layer refuses, the layers before it, and its own
    /// mixer before its cross-attention, may have read; such a cache is of no use until [`reset`](TransformerCache::reset).
    pub fn forward_cached(
        &self,
        input: impl Into<LayerInput>,
        cache: &mut TransformerCache<M::State>,
    ) -> Tensor<3> {
        self.check_cache(cache);
        let mut input = input.into();
        check_room(&input, cache);
        if let Some(lengths) = &cache.memory_lengths {
            assert!(
                input.more.memory_context.lengths.is_none(),
                "TransformerStack: memory lengths were given beside those of the cache, {lengths:?}"
            );
            // A mask that hides nothing would cost memory and time.
            if lengths.iter().any(|&length| length < cache.memory_len()) {
                input = input.memory_lengths(lengths);
            }
        }
        let call = MixerCall::default();
        self.fold(input, call, |layer, input, source, call| {
            let cache = &mut cache.layers[source];
            layer.run_cached(input, cache, call).states
        })
    }

    fn check_cache(&self, cache: &TransformerCache<M::State>) {
        let last = self.source_of.iter().max();
        let (caches, own) = (cache.layers.len(), last.map_or(0, |last| last + 1));
        assert!(
            caches == own,
            "TransformerStack: a cache of {caches} layers does not fit a stack with {own} layers that have keys and values of their own"
        );
        let Some((first, rest)) = cache.layers.split_first() else {
            return;
        };
        let expected = first.tokens.lengths();
        for (at, cache) in (1..).zip(rest) {
            let lengths = cache.tokens.lengths();
            let layer = self.source_of.iter().position(|&source| source == at);
            let layer = layer.expect("a cache is of a layer");
            assert!(
                lengths == expected,
                "TransformerStack: the cache of layer {layer} has {lengths:?} tokens, but that of layer 0 has {expected:?}"
            );
        }
    }
}

/// Panics when a layer has no room for the tokens of `input`, before any has read them.
fn check_room<S: MixerState>(input: &LayerInput, cache: &TransformerCache<S>) {
    let [batch, len, _] = input.x.dims();
    let lengths = input.context.lengths.as_deref();
    // Lengths that do not fit the sequences are refused by the first layer.
    let counts = lengths.map_or_else(
        || vec![len; batch],
        |lengths| lengths.iter().map(|&length| length.min(len)).collect(),
    );
    if counts.len() == cache.lengths().len() {
        cache.check(|tokens| tokens.refuses_tokens(&counts));
    }
}
