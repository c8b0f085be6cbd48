//! The decoder: every position looks back at its own sequence, and over to an encoder's memory.

use burn::{
    module::Module,
    tensor::{Device, Tensor},
};
use burn_attn_derive::Config;
use burn_attn_ops::AttentionMask;

use super::{BlockConfig, FeedForward, Norm, Residual, block::LayerParts, layer::finish};
use crate::{
    CrossAttention, CrossAttentionInput, SelfAttention, SelfAttentionInput,
    error::{ConfigError, expect_valid},
};

/// Configuration of [`TransformerDecoder`].
#[derive(Config, Debug)]
pub struct TransformerDecoderConfig {
    /// Width of the input, the memory and the output.
    pub d_model: usize,
    /// Width inside the feed-forward networks.
    pub d_ff: usize,
    /// Number of heads.
    pub n_heads: usize,
    /// Number of layers.
    pub n_layers: usize,
    /// How every layer is built; not `parallel`. A `window` needs `causal`.
    #[config(default = "BlockConfig::new()")]
    pub block: BlockConfig,
    /// Whether a position of the target sees only itself and what came before, or the whole target: the latter by default, as in burn-nn and
    /// PyTorch, where a mask of the input makes it causal. Decoding token by token needs it; object queries (DETR, arXiv:2005.12872)
    /// see each other.
    #[config(default = false, missing = true)]
    pub causal: bool,
    /// Whether a last norm follows the stack. Default: unless the block is post-norm, whose sums are normalised.
    pub final_norm: Option<bool>,
}

impl TransformerDecoderConfig {
    /// Whether a module can be built.
    ///
    /// # Errors
    ///
    /// Names the fields and values that contradict each other.
    pub fn validate(&self) -> Result<(), ConfigError> {
        const NAME: &str = "TransformerDecoderConfig";
        self.parts().validate_with_memory(NAME, self.causal)?;
        if let (false, Some(window)) = (self.causal, self.block.window) {
            let reason = format!("the block has a window of {window}, which needs causal true");
            return Err(ConfigError::Invalid {
                config: NAME,
                reason,
            });
        }
        ConfigError::check_positive(NAME, &[("n_layers", self.n_layers)])
    }

    /// Builds the module.
    ///
    /// # Panics
    ///
    /// With the sentence of [`validate`](Self::validate).
    pub fn init(&self, device: &Device) -> TransformerDecoder {
        expect_valid(self.validate());
        let parts = self.parts();
        TransformerDecoder {
            layers: (0..self.n_layers)
                .map(|_| TransformerDecoderLayer::new(&parts, self.causal, device))
                .collect(),
            norm: parts.final_norm(self.final_norm, device),
        }
    }

    fn parts(&self) -> LayerParts<'_> {
        LayerParts {
            d_model: self.d_model,
            d_ff: self.d_ff,
            n_heads: self.n_heads,
            block: &self.block,
        }
    }
}

/// One layer of a [`TransformerDecoder`]: self-attention, cross-attention, feed-forward, each in a residual sum.
#[derive(Module, Debug)]
pub struct TransformerDecoderLayer {
    /// Every position of the target looks at the target, or (causal) at itself and what came before.
    pub self_attention: SelfAttention,
    /// The sum and norm around the self-attention.
    pub self_attention_residual: Residual,
    /// Every position looks at the encoder's memory.
    pub cross_attention: CrossAttention,
    /// The sum and norm around the cross-attention.
    pub cross_attention_residual: Residual,
    /// Every position thinks on its own.
    pub feed_forward: FeedForward,
    /// The sum and norm around the feed-forward network.
    pub feed_forward_residual: Residual,
}

/// A stack of self-attention, cross-attention and feed-forward layers, [`causal`](TransformerDecoderConfig::causal) or not. Without an
/// encoder to look at, take [`CausalTransformer`](crate::CausalTransformer).
///
/// # Source
///
/// "Attention is all you need" (arXiv:1706.03762), section 3.1. PyTorch equivalent: `nn.TransformerDecoder` with
/// `batch_first=True`, and with `causal` a causal `tgt_mask`.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use burn_attn::{AttentionMask, TransformerDecoderConfig, TransformerDecoderInput};
///
/// let device = Device::default();
/// let decoder = TransformerDecoderConfig::new(32, 64, 4, 2).with_causal(true).init(&device);
/// let target = Tensor::random([2, 5, 32], Distribution::Default, &device);
/// let memory = Tensor::random([2, 7, 32], Distribution::Default, &device);
/// let source_lengths = Tensor::from_data([7, 4], &device);
/// let input = TransformerDecoderInput::new(target, memory)
///     .memory_mask(AttentionMask::key_lengths(source_lengths));
/// assert_eq!(decoder.forward(input).dims(), [2, 5, 32]);
/// ```
#[derive(Module, Debug)]
pub struct TransformerDecoder {
    /// The layers, first to last.
    pub layers: Vec<TransformerDecoderLayer>,
    /// The last norm, if there is one.
    pub norm: Option<Norm>,
}

/// What [`TransformerDecoder`] reads.
#[derive(Clone, Debug)]
pub struct TransformerDecoderInput {
    target: Tensor<3>,
    memory: Tensor<3>,
    target_mask: AttentionMask,
    memory_mask: AttentionMask,
}

impl TransformerDecoderInput {
    /// Embedded targets `[batch, len_q, d_model]` and the encoder's memory `[batch, len_kv, d_model]`.
    pub fn new(target: Tensor<3>, memory: Tensor<3>) -> Self {
        Self {
            target,
            memory,
            target_mask: AttentionMask::none(),
            memory_mask: AttentionMask::none(),
        }
    }

    /// Which positions of the target may be seen; a causal decoder hides later ones anyhow. Several masks all hide, as by [`AttentionMask::and`].
    pub fn target_mask(mut self, mask: AttentionMask) -> Self {
        self.target_mask = self.target_mask.and(mask);
        self
    }

    /// Which positions of the memory may be seen; several masks all hide, as by [`AttentionMask::and`].
    pub fn memory_mask(mut self, mask: AttentionMask) -> Self {
        self.memory_mask = self.memory_mask.and(mask);
        self
    }
}

/// What [`TransformerDecoder`] returns when asked for its weights.
#[derive(Clone, Debug)]
pub struct TransformerDecoderOutput {
    /// `[batch, len_q, d_model]`
    pub states: Tensor<3>,
    /// One `[batch, heads, len_q, len_q]` a layer.
    pub self_weights: Vec<Tensor<4>>,
    /// One `[batch, heads, len_q, len_kv]` a layer.
    pub cross_weights: Vec<Tensor<4>>,
}

impl TransformerDecoder {
    /// The states of every position of the target.
    ///
    /// # Shapes
    ///
    /// - target, output: `[batch, len_q, d_model]`
    /// - memory: `[batch, len_kv, d_model]`
    ///
    /// # Panics
    ///
    /// When a width is not `d_model`, the batches differ or a mask does not fit.
    pub fn forward(&self, input: TransformerDecoderInput) -> Tensor<3> {
        let states = self.layers.iter().fold(input.target.clone(), |x, layer| {
            let (x, (), ()) = layer.forward(
                x,
                |attention, x| (attention.forward(input.self_attention(x)), ()),
                |attention, x| (attention.forward(input.cross_attention(x)), ()),
            );
            x
        });
        finish(self.norm.as_ref(), states)
    }

    /// The states, and the attention weights of every layer.
    ///
    /// # Shapes
    ///
    /// As [`forward`](Self::forward); see [`TransformerDecoderOutput`].
    ///
    /// # Panics
    ///
    /// As [`forward`](Self::forward).
    pub fn forward_with_weights(&self, input: TransformerDecoderInput) -> TransformerDecoderOutput {
        let mut self_weights = Vec::with_capacity(self.layers.len());
        let mut cross_weights = Vec::with_capacity(self.layers.len());
        let states = self.layers.iter().fold(input.target.clone(), |x, layer| {
            let (x, of_self, of_cross) = layer.forward(
                x,
                |attention, x| {
                    let output = attention.forward_with_weights(input.self_attention(x));
                    (output.context, output.weights)
                },
                |attention, x| {
                    let output = attention.forward_with_weights(input.cross_attention(x));
                    (output.context, output.weights)
                },
            );
            self_weights.push(of_self);
            cross_weights.push(of_cross);
            x
        });
        TransformerDecoderOutput {
            states: finish(self.norm.as_ref(), states),
            self_weights,
            cross_weights,
        }
    }
}

impl TransformerDecoderInput {
    fn self_attention(&self, x: Tensor<3>) -> SelfAttentionInput {
        SelfAttentionInput::new(x).mask(self.target_mask.clone())
    }

    fn cross_attention(&self, x: Tensor<3>) -> CrossAttentionInput {
        CrossAttentionInput::new(x, self.memory.clone()).mask(self.memory_mask.clone())
    }
}

impl TransformerDecoderLayer {
    fn new(parts: &LayerParts, causal: bool, device: &Device) -> Self {
        Self {
            self_attention: parts.self_attention(causal, device),
            self_attention_residual: parts.residual(device),
            cross_attention: parts.cross_attention(device),
            cross_attention_residual: parts.residual(device),
            feed_forward: parts.feed_forward(device),
            feed_forward_residual: parts.residual(device),
        }
    }

    pub(super) fn forward<S, T>(
        &self,
        x: Tensor<3>,
        attend_self: impl FnOnce(&SelfAttention, Tensor<3>) -> (Tensor<3>, S),
        attend_memory: impl FnOnce(&CrossAttention, Tensor<3>) -> (Tensor<3>, T),
    ) -> (Tensor<3>, S, T) {
        let (x, of_self) = self
            .self_attention_residual
            .forward(x, |x| attend_self(&self.self_attention, x));
        let (x, of_cross) = self
            .cross_attention_residual
            .forward(x, |x| attend_memory(&self.cross_attention, x));
        let (x, ()) = self
            .feed_forward_residual
            .forward(x, |x| (self.feed_forward.forward(x), ()));
        (x, of_self, of_cross)
    }
}
