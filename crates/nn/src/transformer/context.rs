//! Everything that a layer reads, apart from its input.

use burn::tensor::Tensor;
use burn_attn_ops::{AttentionBias, AttentionMask, CausalAlignment};

use crate::{
    CrossAttentionInput, CrossMemory, ProjectedMemory, SelfAttentionInput, positions::Position,
};

/// Everything that a [`TransformerLayer`](crate::TransformerLayer) reads apart from its input: masks, biases, positions, the
/// memory. A stack passes the same context to all of its layers.
///
/// A value that does not fit makes `forward` panic, with one sentence that names it; masks that cannot be combined panic at
/// once ([`AttentionMask::and`]).
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use burn_attn::{AttentionMask, LayerContext, TransformerLayerConfig};
///
/// let device = Device::default();
/// let layer = TransformerLayerConfig::new(32, 64, 4).init(&device);
/// let x = Tensor::random([2, 7, 32], Distribution::Default, &device);
/// let context = LayerContext::new().lengths(&[7, 4]).weights(true);
/// let output = layer.forward(x, &context);
/// assert_eq!(output.self_weights.unwrap().dims(), [2, 4, 7, 7]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct LayerContext {
    mask: AttentionMask,
    bias: Option<AttentionBias>,
    lengths: Option<Vec<usize>>,
    position: Option<Position>,
    embedding: Option<Tensor<3>>,
    memory: Option<CrossMemory>,
    /// Tokens of each sequence before the input, if they are in a cache.
    earlier: Option<Vec<usize>>,
    memory_mask: AttentionMask,
    memory_embedding: Option<Tensor<3>>,
    pub(super) weights: bool,
}

impl LayerContext {
    /// A context without anything.
    pub fn new() -> Self {
        Self::default()
    }

    /// Also hides what `mask` hides from self-attention, in addition to causality and earlier masks; see
    /// [`AttentionMask::and`].
    pub fn mask(mut self, mask: AttentionMask) -> Self {
        self.mask = self.mask.and(mask);
        self
    }

    /// Adds `bias` to the scores of self-attention, on top of position biases and earlier biases; see [`AttentionBias::and`].
    pub fn bias(mut self, bias: AttentionBias) -> Self {
        self.bias = Some(match self.bias {
            Some(other) => other.and(bias),
            None => bias,
        });
        self
    }

    /// Sequence `b` has `lengths[b]` tokens; what follows is padding, which no query sees and no cache keeps.
    pub fn lengths(mut self, lengths: &[usize]) -> Self {
        self.lengths = Some(lengths.to_vec());
        self
    }

    /// A position encoding for self-attention that several layers share, in place of the layer's own, ALiBi included. A stack whose
    /// layers share a position encoding of their own, rotary or relative, refuses it.
    pub fn position(mut self, position: Position) -> Self {
        self.position = Some(position);
        self
    }

    /// Added to the input of the query and key projections that read `x`, in every attention, but not to that of the values:
    /// the position embeddings, or the learned queries, of a DETR (arXiv:2005.12872).
    ///
    /// # Shapes
    ///
    /// `[batch or 1, len, d_model]`
    pub fn query_key_embedding(mut self, embedding: Tensor<3>) -> Self {
        self.embedding = Some(embedding);
        self
    }

    /// The memory for cross-attention: an encoder's states `[batch, len_kv, d_memory]`, or the result of
    /// [`project_memory`](crate::CrossAttention::project_memory) of this layer's cross-attention.
    pub fn memory(mut self, memory: impl Into<CrossMemory>) -> Self {
        self.memory = Some(memory.into());
        self
    }

    /// Also hides what `mask` hides of the memory, in addition to earlier masks; see [`AttentionMask::and`]. A mask by position counts
    /// as [`QueryOffset`](crate::positions::QueryOffset) says; with a cache, the tokens in it come first.
    pub fn memory_mask(mut self, mask: AttentionMask) -> Self {
        self.memory_mask = self.memory_mask.and(mask);
        self
    }

    /// Added to the input of the memory's key projection, but not to that of its values: the position embeddings of a DETR's
    /// image. Not possible with a cache, whose memory is projected already.
    ///
    /// # Shapes
    ///
    /// `[batch or 1, len_kv, d_memory]`
    pub fn memory_embedding(mut self, embedding: Tensor<3>) -> Self {
        self.memory_embedding = Some(embedding);
        self
    }

    /// Whether to return attention weights. Default: no.
    pub fn weights(mut self, weights: bool) -> Self {
        self.weights = weights;
        self
    }

    /// The memory of a cache that holds `earlier[b]` tokens of sequence `b`.
    pub(super) fn memory_of(self, earlier: Vec<usize>, memory: ProjectedMemory) -> Self {
        Self {
            earlier: Some(earlier),
            ..self.memory(memory)
        }
    }

    pub(super) fn has_position(&self) -> bool {
        self.position.is_some()
    }

    pub(super) fn has_memory(&self) -> bool {
        self.memory.is_some()
    }

    /// Whether queries are aligned with the end of the memory by name, for which the whole target is needed.
    pub(super) fn needs_the_whole_target(&self) -> bool {
        self.memory_mask.named_alignment() == Some(CausalAlignment::BottomRight)
    }

    /// Panics if it says how to look at a memory and the layer has no cross-attention: a mask meant for self-attention would be ignored.
    pub(super) fn check_memory_options(&self, has_cross_attention: bool) {
        let has_options = !self.memory_mask.is_none() || self.memory_embedding.is_some();
        assert!(
            has_cross_attention || !has_options,
            "TransformerLayer: a memory mask or a memory embedding was given to a layer without cross-attention"
        );
    }

    /// The input of self-attention.
    pub(super) fn self_attention(&self, x: Tensor<3>) -> SelfAttentionInput {
        let mut input = SelfAttentionInput::new(x).mask(self.mask.clone());
        if let Some(bias) = &self.bias {
            input = input.bias(bias.clone());
        }
        if let Some(lengths) = &self.lengths {
            input = input.lengths(lengths);
        }
        if let Some(position) = &self.position {
            input = input.position(position.clone());
        }
        if let Some(embedding) = &self.embedding {
            input = input.query_key_embedding(embedding.clone());
        }
        input
    }

    /// The input of cross-attention, if there is a memory.
    pub(super) fn cross_attention(&self, x: Tensor<3>) -> Option<CrossAttentionInput> {
        let mut input =
            CrossAttentionInput::new(x, self.memory.clone()?).mask(self.memory_mask.clone());
        if let Some(embedding) = &self.embedding {
            input = input.query_embedding(embedding.clone());
        }
        if let Some(earlier) = &self.earlier {
            input = input.offset(earlier.as_slice());
        }
        if let Some(embedding) = &self.memory_embedding {
            input = input.key_embedding(embedding.clone());
        }
        Some(input)
    }
}
