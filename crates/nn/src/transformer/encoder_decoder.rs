//! Encoder and decoder together.

use burn::{
    config::Config,
    module::Module,
    nn::{Initializer, activation::ActivationConfig},
    tensor::{Device, Tensor},
};
use burn_attn_ops::AttentionMask;

use super::{
    TransformerDecoder, TransformerDecoderConfig, TransformerDecoderInput, TransformerEncoder,
    TransformerEncoderConfig, TransformerEncoderInput,
};
use crate::error::{ConfigError, expect_valid};

/// Configuration of [`Transformer`].
#[derive(Config, Debug)]
pub struct TransformerConfig {
    /// Width of the inputs and the output.
    pub d_model: usize,
    /// Width inside the feed-forward layers.
    pub d_ff: usize,
    /// Number of heads.
    pub n_heads: usize,
    /// Number of encoder layers.
    pub n_encoder_layers: usize,
    /// Number of decoder layers.
    pub n_decoder_layers: usize,
    /// Probability of dropping a number in training, in attention weights, feed-forward and residual sums.
    #[config(default = 0.1)]
    pub dropout: f64,
    /// Whether each sublayer normalises its input (pre-norm) or its output (post-norm, as in the paper).
    #[config(default = true)]
    pub norm_first: bool,
    /// Whether a last norm follows each stack. Default: only with `norm_first`, whose sums are not normalised.
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

impl TransformerConfig {
    /// Whether a module can be built.
    ///
    /// # Errors
    ///
    /// Names the fields and values that contradict each other.
    pub fn validate(&self) -> Result<(), ConfigError> {
        const NAME: &str = "TransformerConfig";
        ConfigError::check_heads(NAME, self.d_model, self.n_heads)?;
        ConfigError::check_positive(
            NAME,
            &[
                ("d_ff", self.d_ff),
                ("n_encoder_layers", self.n_encoder_layers),
                ("n_decoder_layers", self.n_decoder_layers),
            ],
        )?;
        ConfigError::check_dropout(NAME, self.dropout)
    }

    /// Builds the module.
    ///
    /// # Panics
    ///
    /// With the sentence of [`validate`](Self::validate).
    pub fn init(&self, device: &Device) -> Transformer {
        expect_valid(self.validate());
        let encoder = TransformerEncoderConfig {
            n_layers: self.n_encoder_layers,
            d_model: self.d_model,
            d_ff: self.d_ff,
            n_heads: self.n_heads,
            dropout: self.dropout,
            norm_first: self.norm_first,
            final_norm: self.final_norm,
            activation: self.activation.clone(),
            initializer: self.initializer.clone(),
        };
        let decoder = TransformerDecoderConfig {
            n_layers: self.n_decoder_layers,
            d_model: self.d_model,
            d_ff: self.d_ff,
            n_heads: self.n_heads,
            dropout: self.dropout,
            norm_first: self.norm_first,
            final_norm: self.final_norm,
            activation: self.activation.clone(),
            initializer: self.initializer.clone(),
        };
        Transformer {
            encoder: encoder.init(device),
            decoder: decoder.init(device),
        }
    }
}

/// The encoder–decoder transformer of the paper, on embedded inputs.
///
/// # Source
///
/// "Attention is all you need" (arXiv:1706.03762), figure 1. PyTorch equivalent: `nn.Transformer` with
/// `batch_first=True`, a causal `tgt_mask`, and (`final_norm: Some(true)`) its final norms.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use burn_attn::{AttentionMask, TransformerConfig, TransformerInput};
///
/// let device = Device::default();
/// let transformer = TransformerConfig::new(32, 64, 4, 2, 2).init(&device);
/// let random = |len| Tensor::random([2, len, 32], Distribution::Default, &device);
/// let lengths = Tensor::from_data([7, 4], &device);
/// let input = TransformerInput::new(random(7), random(5)).source_mask(AttentionMask::key_lengths(lengths));
/// assert_eq!(transformer.forward(input).dims(), [2, 5, 32]);
/// ```
#[derive(Module, Debug)]
pub struct Transformer {
    /// Reads the source.
    pub encoder: TransformerEncoder,
    /// Writes the target.
    pub decoder: TransformerDecoder,
}

/// What [`Transformer`] reads.
#[derive(Clone, Debug)]
pub struct TransformerInput {
    source: Tensor<3>,
    target: Tensor<3>,
    source_mask: AttentionMask,
    target_mask: AttentionMask,
}

impl TransformerInput {
    /// Embedded sources `[batch, len_source, d_model]` and targets `[batch, len_target, d_model]`.
    pub fn new(source: Tensor<3>, target: Tensor<3>) -> Self {
        Self {
            source,
            target,
            source_mask: AttentionMask::none(),
            target_mask: AttentionMask::none(),
        }
    }

    /// Which positions of the source may be seen, by the encoder and from the decoder.
    pub fn source_mask(mut self, mask: AttentionMask) -> Self {
        self.source_mask = mask;
        self
    }

    /// Which positions of the target may be seen; later ones are hidden anyhow.
    pub fn target_mask(mut self, mask: AttentionMask) -> Self {
        self.target_mask = mask;
        self
    }
}

/// What [`Transformer`] returns when asked for its weights.
#[derive(Clone, Debug)]
pub struct TransformerOutput {
    /// `[batch, len_target, d_model]`
    pub states: Tensor<3>,
    /// One `[batch, heads, len_source, len_source]` an encoder layer.
    pub encoder_weights: Vec<Tensor<4>>,
    /// One `[batch, heads, len_target, len_target]` a decoder layer.
    pub decoder_weights: Vec<Tensor<4>>,
    /// One `[batch, heads, len_target, len_source]` a decoder layer.
    pub cross_weights: Vec<Tensor<4>>,
}

impl Transformer {
    /// The decoder's states.
    ///
    /// # Shapes
    ///
    /// - source: `[batch, len_source, d_model]`
    /// - target, output: `[batch, len_target, d_model]`
    ///
    /// # Panics
    ///
    /// When a width is not `d_model`, the batches differ or a mask does not fit.
    pub fn forward(&self, input: TransformerInput) -> Tensor<3> {
        let memory = self
            .encoder
            .forward(TransformerEncoderInput::new(input.source).mask(input.source_mask.clone()));
        self.decoder.forward(
            TransformerDecoderInput::new(input.target, memory)
                .target_mask(input.target_mask)
                .memory_mask(input.source_mask),
        )
    }

    /// The decoder's states, and the attention weights of every layer.
    ///
    /// # Shapes
    ///
    /// As [`forward`](Self::forward); see [`TransformerOutput`].
    ///
    /// # Panics
    ///
    /// As [`forward`](Self::forward).
    pub fn forward_with_weights(&self, input: TransformerInput) -> TransformerOutput {
        let encoded = self.encoder.forward_with_weights(
            TransformerEncoderInput::new(input.source).mask(input.source_mask.clone()),
        );
        let decoded = self.decoder.forward_with_weights(
            TransformerDecoderInput::new(input.target, encoded.states)
                .target_mask(input.target_mask)
                .memory_mask(input.source_mask),
        );
        TransformerOutput {
            states: decoded.states,
            encoder_weights: encoded.weights,
            decoder_weights: decoded.self_weights,
            cross_weights: decoded.cross_weights,
        }
    }
}
