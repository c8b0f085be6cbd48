//! How the decoder decodes: it reads each token once, and its memory once.

use burn::tensor::{Int, Tensor, TensorData};
use burn_attn_ops::AttentionMask;

use super::{
    TransformerDecoder,
    layer::{check_caches, check_room, finish},
};
use crate::{CrossAttentionInput, KvCache, KvCacheConfig, ProjectedMemory, SelfAttentionInput};

/// What a [`TransformerDecoder`] keeps while it decodes: the keys and values of every layer, of its own tokens and of the
/// memory.
#[derive(Clone, Debug)]
pub struct TransformerDecoderCache {
    layers: Vec<(KvCache, ProjectedMemory)>,
    /// Real positions of each memory, `[batch]`.
    memory_lengths: Tensor<1, Int>,
}

impl TransformerDecoderCache {
    /// Tokens of each sequence so far.
    pub fn lengths(&self) -> Vec<usize> {
        let first = self.layers.first();
        first.map_or_else(Vec::new, |(cache, _)| cache.lengths())
    }

    /// Memory held by the keys and values of the tokens (bytes).
    pub fn bytes(&self) -> usize {
        self.layers.iter().map(|(cache, _)| cache.bytes()).sum()
    }

    /// Sequence `b` becomes what sequence `rows[b]` was; see [`KvCache::reorder`].
    ///
    /// # Panics
    ///
    /// When there is no such sequence.
    pub fn reorder(&mut self, rows: &[usize]) {
        let batch = self.lengths().len();
        let stays = rows.iter().copied().eq(0..batch);
        let items: Vec<i64> = rows.iter().map(|&row| row as i64).collect();
        let items = TensorData::new(items, [rows.len()]);
        let items = Tensor::<1, Int>::from_data(items, &self.memory_lengths.device());
        for (cache, memory) in &mut self.layers {
            cache.reorder(rows);
            if !stays {
                *memory = memory.select(items.clone());
            }
        }
        if !stays {
            self.memory_lengths = self.memory_lengths.clone().select(0, items);
        }
    }

    /// Forgets all but the first `lengths[b]` tokens of each sequence `b`; its memory stays. See [`KvCache::truncate`].
    ///
    /// # Panics
    ///
    /// As [`KvCache::truncate`].
    pub fn truncate(&mut self, lengths: &[usize]) {
        for (cache, _) in &mut self.layers {
            cache.truncate(lengths);
        }
    }
}

impl TransformerDecoder {
    /// A cache for [`forward_cached`](Self::forward_cached) over a memory, whose keys and values are projected here, once.
    ///
    /// # Shapes
    ///
    /// - `memory`: `[batch, len_kv, d_model]`
    /// - `memory_lengths`: `[batch]`
    ///
    /// # Panics
    ///
    /// When the memory's width is not `d_model`, a size of `config` is zero, or its `max_len` is more than the positions of a
    /// rotary encoding.
    pub fn cache(
        &self,
        memory: Tensor<3>,
        memory_lengths: Tensor<1, Int>,
        config: &KvCacheConfig,
    ) -> TransformerDecoderCache {
        let [batch, _, _] = memory.dims();
        let layers = self.layers.iter().map(|layer| {
            check_room("TransformerDecoder", &layer.self_attention, config);
            (
                layer.self_attention.cache(batch, config),
                layer.cross_attention.project_memory(memory.clone()),
            )
        });
        TransformerDecoderCache {
            layers: layers.collect(),
            memory_lengths,
        }
    }

    /// The states of the next tokens of each target, which join the cache: the same as [`forward`](Self::forward) of the whole
    /// targets has there.
    ///
    /// Target `b` has `lengths[b]` new tokens; what stands behind them is padding.
    ///
    /// # Shapes
    ///
    /// - `target`, output: `[batch, len, d_model]`
    ///
    /// # Panics
    ///
    /// When the decoder is not causal, or the cache is another stack's, of another batch or dtype, or full.
    pub fn forward_cached(
        &self,
        target: Tensor<3>,
        lengths: &[usize],
        cache: &mut TransformerDecoderCache,
    ) -> Tensor<3> {
        let caches = cache.layers.iter().map(|(cache, _)| cache);
        check_caches("TransformerDecoder", self.layers.len(), caches);
        let mask = AttentionMask::key_lengths(cache.memory_lengths.clone());
        let layers = self.layers.iter().zip(&mut cache.layers);
        let states = layers.fold(target, |x, (layer, (cache, memory))| {
            let (x, (), ()) = layer.forward(
                x,
                |attention, x| {
                    let input = SelfAttentionInput::new(x).lengths(lengths);
                    (attention.forward_cached(input, cache), ())
                },
                |attention, x| {
                    let input = CrossAttentionInput::new(x, memory.clone()).mask(mask.clone());
                    (attention.forward(input), ())
                },
            );
            x
        });
        finish(self.norm.as_ref(), states)
    }
}
