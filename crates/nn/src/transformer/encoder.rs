//! The encoder: every position of a sequence attends to all positions.

use burn::tensor::Device;
use burn_attn_derive::Config;

use super::{
    BlockConfig, LayerPattern, TransformerStack, TransformerStackConfig, TransformerStackInput,
};
use crate::error::{ConfigError, expect_valid};

/// Configuration of [`TransformerEncoder`]: fields that burn-nn 0.22.1's `TransformerEncoderConfig` has as well mean the same
/// here.
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
    /// How every layer is built, unless `pattern` overrides it; without a `window`.
    #[config(default = "BlockConfig::new()")]
    pub block: BlockConfig,
    /// Which layers differ, and which share their weights.
    #[config(default = "LayerPattern::Alike", missing = "LayerPattern::Alike")]
    pub pattern: LayerPattern,
    /// Whether a final norm follows the stack. Default: yes, unless the block is post-norm, whose sums are normalised already.
    pub final_norm: Option<bool>,
}

impl TransformerEncoderConfig {
    /// Whether a module can be built.
    ///
    /// # Errors
    ///
    /// Names the fields and values that contradict each other.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.stack().validate_in("TransformerEncoderConfig")
    }

    /// Builds the module.
    ///
    /// # Panics
    ///
    /// With the sentence of [`validate`](Self::validate).
    pub fn init(&self, device: &Device) -> TransformerEncoder {
        expect_valid(self.validate());
        self.stack().init(device)
    }

    fn stack(&self) -> TransformerStackConfig {
        TransformerStackConfig {
            d_model: self.d_model,
            d_ff: self.d_ff,
            n_heads: self.n_heads,
            n_layers: self.n_layers,
            causal: false,
            d_memory: None,
            block: self.block.clone(),
            pattern: self.pattern.clone(),
            final_norm: self.final_norm,
        }
    }
}

/// A stack of self-attention and feed-forward layers, built by [`TransformerEncoderConfig`].
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
pub type TransformerEncoder = TransformerStack;

/// Input of [`TransformerEncoder`].
pub type TransformerEncoderInput = TransformerStackInput;
