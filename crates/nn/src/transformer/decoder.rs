//! The decoder: every position looks back at its own sequence, and over to an encoder's memory.

use burn::{
    config::Config,
    module::Module,
    nn::{
        Initializer, LayerNorm, LayerNormConfig,
        activation::ActivationConfig,
        transformer::{PositionWiseFeedForward, PositionWiseFeedForwardConfig},
    },
    tensor::{Device, Tensor},
};
use burn_attn_ops::AttentionMask;

use super::residual::{Residual, feed_forward};
use crate::{
    CrossAttention, CrossAttentionConfig, CrossAttentionInput, SelfAttention, SelfAttentionConfig,
    SelfAttentionInput,
    error::{ConfigError, expect_valid},
};

/// Configuration of [`TransformerDecoder`].
#[derive(Config, Debug)]
pub struct TransformerDecoderConfig {
    /// Width of the input, the memory and the output.
    pub d_model: usize,
    /// Width inside the feed-forward layers.
    pub d_ff: usize,
    /// Number of heads.
    pub n_heads: usize,
    /// Number of layers.
    pub n_layers: usize,
    /// Probability of dropping a number in training, in attention weights, feed-forward and residual sums.
    #[config(default = 0.1)]
    pub dropout: f64,
    /// Whether each sublayer normalises its input (pre-norm) or its output (post-norm, as in the paper).
    #[config(default = true)]
    pub norm_first: bool,
    /// Whether a last norm follows the stack. Default: only with `norm_first`, whose sums are not normalised.
    pub final_norm: Option<bool>,
    /// Between the two layers of the feed-forward network.
    #[config(default = "ActivationConfig::Relu")]
    pub activation: ActivationConfig,
    /// How the projections start.
    #[config(
        default = "Initializer::KaimingUniform { gain: 1.0 / 3.0f64.sqrt(), fan_out_only: false }"
    )]
    pub initializer: Initializer,
}

impl TransformerDecoderConfig {
    /// Whether a module can be built.
    ///
    /// # Errors
    ///
    /// Names the fields and values that contradict each other.
    pub fn validate(&self) -> Result<(), ConfigError> {
        const NAME: &str = "TransformerDecoderConfig";
        ConfigError::check_heads(NAME, self.d_model, self.n_heads)?;
        ConfigError::check_positive(NAME, &[("d_ff", self.d_ff), ("n_layers", self.n_layers)])?;
        ConfigError::check_dropout(NAME, self.dropout)
    }

    /// Builds the module.
    ///
    /// # Panics
    ///
    /// With the sentence of [`validate`](Self::validate).
    pub fn init(&self, device: &Device) -> TransformerDecoder {
        expect_valid(self.validate());
        let final_norm = self.final_norm.unwrap_or(self.norm_first);
        TransformerDecoder {
            layers: (0..self.n_layers).map(|_| self.layer(device)).collect(),
            norm: final_norm.then(|| LayerNormConfig::new(self.d_model).init(device)),
        }
    }

    fn layer(&self, device: &Device) -> TransformerDecoderLayer {
        let residual = || Residual::new(self.d_model, self.dropout, self.norm_first, device);
        TransformerDecoderLayer {
            self_attention: SelfAttentionConfig::new(self.d_model, self.n_heads)
                .with_causal(true)
                .with_dropout(self.dropout)
                .with_initializer(self.initializer.clone())
                .init(device),
            self_attention_residual: residual(),
            cross_attention: CrossAttentionConfig::new(self.d_model, self.n_heads)
                .with_dropout(self.dropout)
                .with_initializer(self.initializer.clone())
                .init(device),
            cross_attention_residual: residual(),
            feed_forward: PositionWiseFeedForwardConfig::new(self.d_model, self.d_ff)
                .with_dropout(self.dropout)
                .with_activation(self.activation.clone())
                .with_initializer(self.initializer.clone())
                .init(device),
            feed_forward_residual: residual(),
        }
    }
}

/// One layer of a [`TransformerDecoder`]: causal self-attention, cross-attention, feed-forward, each in a residual sum.
#[derive(Module, Debug)]
pub struct TransformerDecoderLayer {
    /// Every position looks at itself and what came before.
    pub self_attention: SelfAttention,
    /// The sum and norm around the self-attention.
    pub self_attention_residual: Residual,
    /// Every position looks at the encoder's memory.
    pub cross_attention: CrossAttention,
    /// The sum and norm around the cross-attention.
    pub cross_attention_residual: Residual,
    /// Every position thinks on its own.
    pub feed_forward: PositionWiseFeedForward,
    /// The sum and norm around the feed-forward network.
    pub feed_forward_residual: Residual,
}

/// A stack of causal self-attention, cross-attention and feed-forward layers.
///
/// # Source
///
/// "Attention is all you need" (arXiv:1706.03762), section 3.1. PyTorch equivalent: `nn.TransformerDecoder` with
/// `batch_first=True` and a causal `tgt_mask`.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use burn_attn::{AttentionMask, TransformerDecoderConfig, TransformerDecoderInput};
///
/// let device = Device::default();
/// let decoder = TransformerDecoderConfig::new(32, 64, 4, 2).init(&device);
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
    pub norm: Option<LayerNorm>,
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

    /// Which positions of the target may be seen; later ones are hidden anyhow.
    pub fn target_mask(mut self, mask: AttentionMask) -> Self {
        self.target_mask = mask;
        self
    }

    /// Which positions of the memory may be seen.
    pub fn memory_mask(mut self, mask: AttentionMask) -> Self {
        self.memory_mask = mask;
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
        self.finish(states)
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
            states: self.finish(states),
            self_weights,
            cross_weights,
        }
    }

    fn finish(&self, states: Tensor<3>) -> Tensor<3> {
        match &self.norm {
            Some(norm) => norm.forward(states),
            None => states,
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
    fn forward<S, T>(
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
            .forward(x, |x| feed_forward(&self.feed_forward, x));
        (x, of_self, of_cross)
    }
}
