//! What a layer is told besides its input.

use burn::tensor::Tensor;
use burn_attn_ops::{AttentionBias, AttentionMask};

use crate::{CrossAttentionInput, CrossMemory, SelfAttentionInput, positions::Position};

/// What a [`TransformerLayer`](crate::TransformerLayer) is told besides its input: by a stack, the same for all of its layers, or by you.
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
    memory_mask: AttentionMask,
    memory_embedding: Option<Tensor<3>>,
    pub(super) weights: bool,
}

impl LayerContext {
    /// Nothing but the input.
    pub fn new() -> Self {
        Self::default()
    }

    /// Which positions self-attention may see, besides what causal layers hide; several masks all hide, as by [`AttentionMask::and`].
    pub fn mask(mut self, mask: AttentionMask) -> Self {
        self.mask = self.mask.and(mask);
        self
    }

    /// Adds to the scores of self-attention; several biases all add, as by [`AttentionBias::and`].
    pub fn bias(mut self, bias: AttentionBias) -> Self {
        self.bias = Some(match self.bias {
            Some(other) => other.and(bias),
            None => bias,
        });
        self
    }

    /// Sequence `b` has `lengths[b]` tokens; those behind them are padding that nobody sees and no cache keeps.
    pub fn lengths(mut self, lengths: &[usize]) -> Self {
        self.lengths = Some(lengths.to_vec());
        self
    }

    /// A position encoding for self-attention instead of the layer's own: one that several layers share. A stack that has one of its own
    /// refuses another.
    pub fn position(mut self, position: Position) -> Self {
        self.position = Some(position);
        self
    }

    /// Added to what queries and keys are made of, in every attention that reads `x`, but not to what values are: the positions, or the
    /// learned queries, of a DETR (arXiv:2005.12872).
    ///
    /// # Shapes
    ///
    /// `[batch or 1, len, d_model]`
    pub fn query_key_embedding(mut self, embedding: Tensor<3>) -> Self {
        self.embedding = Some(embedding);
        self
    }

    /// What cross-attention looks at: an encoder's states `[batch, len_kv, d_memory]`, or what this layer's
    /// [`project_memory`](crate::CrossAttention::project_memory) made of them.
    pub fn memory(mut self, memory: impl Into<CrossMemory>) -> Self {
        self.memory = Some(memory.into());
        self
    }

    /// Which positions of the memory may be seen; several masks all hide.
    pub fn memory_mask(mut self, mask: AttentionMask) -> Self {
        self.memory_mask = self.memory_mask.and(mask);
        self
    }

    /// Added to what the keys of the memory are made of, but not to what its values are: the positions of a DETR's image. Not with a cache, whose
    /// memory is projected already.
    ///
    /// # Shapes
    ///
    /// `[batch or 1, len_kv, d_memory]`
    pub fn memory_embedding(mut self, embedding: Tensor<3>) -> Self {
        self.memory_embedding = Some(embedding);
        self
    }

    /// Whether attention weights are wanted. Default: no.
    pub fn weights(mut self, weights: bool) -> Self {
        self.weights = weights;
        self
    }

    pub(super) fn has_position(&self) -> bool {
        self.position.is_some()
    }

    pub(super) fn has_memory(&self) -> bool {
        self.memory.is_some()
    }

    /// What self-attention reads.
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

    /// What cross-attention reads, if there is a memory.
    pub(super) fn cross_attention(&self, x: Tensor<3>) -> Option<CrossAttentionInput> {
        let mut input =
            CrossAttentionInput::new(x, self.memory.clone()?).mask(self.memory_mask.clone());
        if let Some(embedding) = &self.embedding {
            input = input.query_embedding(embedding.clone());
        }
        if let Some(embedding) = &self.memory_embedding {
            input = input.key_embedding(embedding.clone());
        }
        Some(input)
    }
}
