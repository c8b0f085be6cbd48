//! The input of layers and stacks: sequences, and what the attentions of a layer read apart from them.

use burn::tensor::Tensor;
use burn_attn_ops::{AttentionMask, CausalAlignment};

use crate::{
    AttentionContext, CrossAttentionInput, CrossMemory, ProjectedMemory, SelfAttentionInput,
    attention::{context_builders, refuse},
    trace::Kept,
};

/// Input of a [`TransformerLayer`](crate::TransformerLayer) or of a stack of them.
///
/// Mask, bias, lengths and position encoding are for self-attention; builders that begin with `memory` are for cross-attention. A
/// stack passes the same context to all layers. [`TransformerStack`](crate::TransformerStack) shows both in use.
#[derive(Clone, Debug)]
pub struct LayerInput {
    pub(super) x: Tensor<3>,
    pub(super) context: AttentionContext,
    pub(super) more: LayerOptions,
}

/// What a layer reads apart from `x` and the context of its self-attention.
#[derive(Clone, Debug, Default)]
pub(super) struct LayerOptions {
    position_embedding: Option<Tensor<3>>,
    pub(super) memory: Option<CrossMemory>,
    pub(super) memory_context: AttentionContext,
    memory_position_embedding: Option<Tensor<3>>,
    /// What is requested besides the states.
    pub(super) kept: Kept,
}

context_builders!(LayerInput);

impl From<Tensor<3>> for LayerInput {
    fn from(x: Tensor<3>) -> Self {
        Self::new(x)
    }
}

impl LayerInput {
    /// A batch of embedded sequences, `[batch, len, d_model]`.
    pub fn new(x: Tensor<3>) -> Self {
        Self {
            x,
            context: AttentionContext::new(),
            more: LayerOptions::default(),
        }
    }

    /// Added to the input of the query and key projections that read `x`, in every attention, but not to that of the values:
    /// the position embeddings, or the learned queries, of a DETR (arXiv:2005.12872). Its shape is `[batch or 1, len, d_model]`.
    pub fn query_key_position_embedding(mut self, embedding: Tensor<3>) -> Self {
        self.more.position_embedding = Some(embedding);
        self
    }

    /// The memory for cross-attention: an encoder's states `[batch, len_kv, d_memory]`, or, for a layer alone, the result of
    /// [`project_memory`](crate::CrossAttention::project_memory) of its cross-attention.
    pub fn memory(mut self, memory: impl Into<CrossMemory>) -> Self {
        self.more.memory = Some(memory.into());
        self
    }

    /// Hides what `mask` hides of the memory, in addition to earlier masks; see [`AttentionMask::and`]. A mask by position counts
    /// as [`QueryOffset`](crate::positions::QueryOffset) says; with a cache, the cached tokens come first.
    pub fn memory_mask(mut self, mask: AttentionMask) -> Self {
        self.more.memory_context = self.more.memory_context.mask(mask);
        self
    }

    /// The memory of sequence `b` has `lengths[b]` tokens. What follows is padding, which no query sees.
    pub fn memory_lengths(mut self, lengths: &[usize]) -> Self {
        self.more.memory_context = self.more.memory_context.lengths(lengths);
        self
    }

    /// Added to the input of the memory's key projection, but not to that of its values: the position embeddings of a DETR's
    /// image. Its shape is `[batch or 1, len_kv, d_memory]`. Not possible with a cache, whose memory is projected already.
    pub fn memory_position_embedding(mut self, embedding: Tensor<3>) -> Self {
        self.more.memory_position_embedding = Some(embedding);
        self
    }

    /// Replaces the whole context of cross-attention, as [`CrossAttentionInput::context`]: also what [`memory_mask`](Self::memory_mask) and
    /// [`memory_lengths`](Self::memory_lengths) said before. All layers of a stack have the same one. With a cache, which knows how many tokens
    /// came before and whose memory is projected already, an offset, positions, key positions and a position encoding panic, and so do lengths beside those
    /// of a stack's cache.
    pub fn memory_context(mut self, context: AttentionContext) -> Self {
        self.more.memory_context = context;
        self
    }

    /// Whether a layer returns attention weights. Default: no. A stack returns them from
    /// [`forward_with_weights`](crate::TransformerStack::forward_with_weights).
    pub fn weights(self, weights: bool) -> Self {
        self.kept(if weights {
            Kept::Weights
        } else {
            Kept::Nothing
        })
    }

    pub(super) fn kept(mut self, kept: Kept) -> Self {
        self.more.kept = kept;
        self
    }

    /// With the memory of a cache that holds `earlier[b]` tokens of sequence `b`. Panics on a memory, a request for weights, or a
    /// bottom-right mask of the memory, an offset into it, positions or an embedding of positions, which a cache does not allow.
    pub(super) fn cached(mut self, earlier: Vec<usize>, memory: Option<ProjectedMemory>) -> Self {
        assert!(
            self.more.memory.is_none(),
            "TransformerLayer: a memory was given beside a cache; give it once, by cache_memory of the stack or as the memory of the layer's cache"
        );
        assert!(
            self.more.kept == Kept::Nothing,
            "TransformerLayer: attention weights cannot be returned with a cache"
        );
        let alignment = self.more.memory_context.mask.named_alignment();
        assert!(
            alignment != Some(CausalAlignment::BottomRight),
            "TransformerLayer: a mask of the memory that is aligned bottom-right needs the whole target, and cannot be combined with a cache"
        );
        let placed = &self.more.memory_context;
        let known = [
            ("an offset into the memory was", placed.offset.is_some()),
            ("positions were", placed.positions.is_some()),
        ];
        refuse(known, |what| {
            format!(
                "TransformerLayer: {what} given beside a cache, which knows how many tokens came before"
            )
        });
        let embedding = self.more.memory_position_embedding.is_some();
        let late = [
            ("a position embedding", embedding),
            ("key positions", placed.key_positions.is_some()),
            ("a position encoding", placed.position.is_some()),
        ];
        refuse(late, |what| {
            format!(
                "TransformerLayer: {what} cannot join the memory of a cache, which is projected already"
            )
        });
        if memory.is_some() {
            self.more.memory_context = self.more.memory_context.offset(earlier);
        }
        self.more.memory = memory.map(CrossMemory::Projected);
        self
    }
}

impl LayerOptions {
    /// Panics unless there is a memory exactly if the layer has cross-attention. Without cross-attention, options of a memory panic too: a
    /// mask meant for self-attention would be ignored.
    pub(super) fn check_memory(&self, has_cross_attention: bool) {
        match (has_cross_attention, self.memory.is_some()) {
            (true, false) => {
                panic!("TransformerLayer: a layer with cross-attention needs a memory")
            }
            (false, true) => {
                panic!("TransformerLayer: a memory was given to a layer without cross-attention")
            }
            _ => {}
        }
        if !has_cross_attention {
            let embedding = self.memory_position_embedding.is_some();
            let of_memory = self.memory_context.given().into_iter();
            let of_memory = of_memory.chain([("a position embedding was", embedding)]);
            refuse(of_memory, |what| {
                format!(
                    "TransformerLayer: {what} given for the memory of a layer without cross-attention"
                )
            });
        }
    }

    pub(super) fn self_attention(
        &self,
        x: Tensor<3>,
        context: AttentionContext,
    ) -> SelfAttentionInput {
        SelfAttentionInput {
            x,
            context,
            query_key_position_embedding: self.position_embedding.clone(),
        }
    }

    /// The input of cross-attention to the memory, which [`check_memory`](Self::check_memory) has found.
    pub(super) fn cross_attention(self, query: Tensor<3>) -> CrossAttentionInput {
        let memory = self.memory;
        CrossAttentionInput {
            query,
            memory: memory.expect("a layer with cross-attention has a memory"),
            context: self.memory_context,
            query_position_embedding: self.position_embedding,
            key_position_embedding: self.memory_position_embedding,
        }
    }
}
