//! The encoder: every position of a sequence looks at all of it.

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
    SelfAttention, SelfAttentionConfig, SelfAttentionInput,
    error::{ConfigError, expect_valid},
};

/// Configuration of [`TransformerEncoder`].
#[derive(Config, Debug)]
pub struct TransformerEncoderConfig {
    /// Width of the input and output.
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

impl TransformerEncoderConfig {
    /// Whether a module can be built.
    ///
    /// # Errors
    ///
    /// Names the fields and values that contradict each other.
    pub fn validate(&self) -> Result<(), ConfigError> {
        const NAME: &str = "TransformerEncoderConfig";
        ConfigError::check_heads(NAME, self.d_model, self.n_heads)?;
        ConfigError::check_positive(NAME, &[("d_ff", self.d_ff), ("n_layers", self.n_layers)])?;
        ConfigError::check_dropout(NAME, self.dropout)
    }

    /// Builds the module.
    ///
    /// # Panics
    ///
    /// With the sentence of [`validate`](Self::validate).
    pub fn init(&self, device: &Device) -> TransformerEncoder {
        expect_valid(self.validate());
        let final_norm = self.final_norm.unwrap_or(self.norm_first);
        TransformerEncoder {
            layers: (0..self.n_layers).map(|_| self.layer(device)).collect(),
            norm: final_norm.then(|| LayerNormConfig::new(self.d_model).init(device)),
        }
    }

    fn layer(&self, device: &Device) -> TransformerEncoderLayer {
        let residual = || Residual::new(self.d_model, self.dropout, self.norm_first, device);
        TransformerEncoderLayer {
            attention: SelfAttentionConfig::new(self.d_model, self.n_heads)
                .with_dropout(self.dropout)
                .with_initializer(self.initializer.clone())
                .init(device),
            attention_residual: residual(),
            feed_forward: PositionWiseFeedForwardConfig::new(self.d_model, self.d_ff)
                .with_dropout(self.dropout)
                .with_activation(self.activation.clone())
                .with_initializer(self.initializer.clone())
                .init(device),
            feed_forward_residual: residual(),
        }
    }
}

/// One layer of a [`TransformerEncoder`]: self-attention, then feed-forward, each in a residual sum.
#[derive(Module, Debug)]
pub struct TransformerEncoderLayer {
    /// Every position looks at all positions.
    pub attention: SelfAttention,
    /// The sum and norm around the attention.
    pub attention_residual: Residual,
    /// Every position thinks on its own.
    pub feed_forward: PositionWiseFeedForward,
    /// The sum and norm around the feed-forward network.
    pub feed_forward_residual: Residual,
}

/// A stack of self-attention and feed-forward layers.
///
/// # Source
///
/// "Attention is all you need" (arXiv:1706.03762), section 3.1; pre-norm: "On layer normalization in the transformer
/// architecture" (arXiv:2002.04745). PyTorch equivalent: `nn.TransformerEncoder` with `batch_first=True`.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use burn_attn::{AttentionMask, TransformerEncoderConfig, TransformerEncoderInput};
///
/// let device = Device::default();
/// let encoder = TransformerEncoderConfig::new(32, 64, 4, 2).init(&device);
/// let x = Tensor::random([2, 7, 32], Distribution::Default, &device);
/// let lengths = Tensor::from_data([7, 4], &device);
/// let input = TransformerEncoderInput::new(x).mask(AttentionMask::key_lengths(lengths));
/// assert_eq!(encoder.forward(input).dims(), [2, 7, 32]);
/// ```
#[derive(Module, Debug)]
pub struct TransformerEncoder {
    /// The layers, first to last.
    pub layers: Vec<TransformerEncoderLayer>,
    /// The last norm, if there is one.
    pub norm: Option<LayerNorm>,
}

/// What [`TransformerEncoder`] reads.
#[derive(Clone, Debug)]
pub struct TransformerEncoderInput {
    x: Tensor<3>,
    mask: AttentionMask,
}

impl TransformerEncoderInput {
    /// A batch of embedded sequences, `[batch, len, d_model]`.
    pub fn new(x: Tensor<3>) -> Self {
        Self {
            x,
            mask: AttentionMask::none(),
        }
    }

    /// Which positions may be seen.
    pub fn mask(mut self, mask: AttentionMask) -> Self {
        self.mask = mask;
        self
    }
}

/// What [`TransformerEncoder`] returns when asked for its weights.
#[derive(Clone, Debug)]
pub struct TransformerEncoderOutput {
    /// `[batch, len, d_model]`
    pub states: Tensor<3>,
    /// One `[batch, heads, len, len]` a layer.
    pub weights: Vec<Tensor<4>>,
}

impl TransformerEncoder {
    /// The states of every position.
    ///
    /// # Shapes
    ///
    /// - input, output: `[batch, len, d_model]`
    ///
    /// # Panics
    ///
    /// When the width is not `d_model` or the mask does not fit.
    pub fn forward(&self, input: TransformerEncoderInput) -> Tensor<3> {
        let states = self.layers.iter().fold(input.x, |x, layer| {
            let (x, ()) = layer.forward(x, |attention, x| {
                let input = SelfAttentionInput::new(x).mask(input.mask.clone());
                (attention.forward(input), ())
            });
            x
        });
        self.finish(states)
    }

    /// The states, and the attention weights of every layer.
    ///
    /// # Shapes
    ///
    /// As [`forward`](Self::forward); see [`TransformerEncoderOutput`].
    ///
    /// # Panics
    ///
    /// As [`forward`](Self::forward).
    pub fn forward_with_weights(&self, input: TransformerEncoderInput) -> TransformerEncoderOutput {
        let mut weights = Vec::with_capacity(self.layers.len());
        let states = self.layers.iter().fold(input.x, |x, layer| {
            let (x, layer_weights) = layer.forward(x, |attention, x| {
                let input = SelfAttentionInput::new(x).mask(input.mask.clone());
                let output = attention.forward_with_weights(input);
                (output.context, output.weights)
            });
            weights.push(layer_weights);
            x
        });
        TransformerEncoderOutput {
            states: self.finish(states),
            weights,
        }
    }

    fn finish(&self, states: Tensor<3>) -> Tensor<3> {
        match &self.norm {
            Some(norm) => norm.forward(states),
            None => states,
        }
    }
}

impl TransformerEncoderLayer {
    fn forward<T>(
        &self,
        x: Tensor<3>,
        attend: impl FnOnce(&SelfAttention, Tensor<3>) -> (Tensor<3>, T),
    ) -> (Tensor<3>, T) {
        let (x, extra) = self
            .attention_residual
            .forward(x, |x| attend(&self.attention, x));
        let (x, ()) = self
            .feed_forward_residual
            .forward(x, |x| feed_forward(&self.feed_forward, x));
        (x, extra)
    }
}
