//! The encoder: every position of a sequence looks at all of it.

use burn::{
    module::Module,
    tensor::{Device, Tensor},
};
use burn_attn_derive::Config;
use burn_attn_ops::AttentionMask;

use super::{BlockConfig, Norm, TransformerLayer, block::LayerParts, layer};
use crate::{
    SelfAttentionInput,
    error::{ConfigError, expect_valid},
};

/// Configuration of [`TransformerEncoder`]: what burn-nn 0.22.1's `TransformerEncoderConfig` says in the same words means the same
/// numbers here.
#[derive(Config, Debug)]
pub struct TransformerEncoderConfig {
    /// Width of the input and output.
    pub d_model: usize,
    /// Width inside the feed-forward networks.
    pub d_ff: usize,
    /// Number of heads.
    pub n_heads: usize,
    /// Number of layers.
    pub n_layers: usize,
    /// How every layer is built; without a `window`.
    #[config(default = "BlockConfig::new()")]
    pub block: BlockConfig,
    /// Whether a last norm follows the stack. Default: unless the block is post-norm, whose sums are normalised.
    pub final_norm: Option<bool>,
}

impl TransformerEncoderConfig {
    /// Whether a module can be built.
    ///
    /// # Errors
    ///
    /// Names the fields and values that contradict each other.
    pub fn validate(&self) -> Result<(), ConfigError> {
        const NAME: &str = "TransformerEncoderConfig";
        self.parts().validate(NAME, false)?;
        if let Some(window) = self.block.window {
            let reason = format!(
                "the block has a window of {window}, but an encoder is not causal; AttentionMask::window is for both directions"
            );
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
    pub fn init(&self, device: &Device) -> TransformerEncoder {
        expect_valid(self.validate());
        let parts = self.parts();
        TransformerEncoder {
            layers: (0..self.n_layers)
                .map(|_| TransformerLayer::new(&parts, false, device))
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
    pub layers: Vec<TransformerLayer>,
    /// The last norm, if there is one.
    pub norm: Option<Norm>,
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

    /// Which positions may be seen; several masks all hide, as by [`AttentionMask::and`].
    pub fn mask(mut self, mask: AttentionMask) -> Self {
        self.mask = self.mask.and(mask);
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
        let TransformerEncoderInput { x, mask } = input;
        let (states, _) = layer::forward(&self.layers, self.norm.as_ref(), x, |attention, x| {
            let input = SelfAttentionInput::new(x).mask(mask.clone());
            (attention.forward(input), ())
        });
        states
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
        let TransformerEncoderInput { x, mask } = input;
        let (states, weights) =
            layer::forward(&self.layers, self.norm.as_ref(), x, |attention, x| {
                let input = SelfAttentionInput::new(x).mask(mask.clone());
                let output = attention.forward_with_weights(input);
                (output.context, output.weights)
            });
        TransformerEncoderOutput { states, weights }
    }
}
