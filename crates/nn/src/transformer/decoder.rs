//! The decoder: every position attends to its own sequence and to an encoder's memory.

use burn::tensor::{Device, Tensor};
use burn_attn_derive::Config;
use burn_attn_ops::AttentionMask;

use super::{
    BlockConfig, LayerPattern, TransformerStack, TransformerStackConfig, TransformerStackInput,
};
use crate::{
    CrossMemory,
    error::{ConfigError, expect_valid},
};

/// Configuration of [`TransformerDecoder`].
#[derive(Config, Debug)]
pub struct TransformerDecoderConfig {
    /// Width of the input and the output.
    pub d_model: usize,
    /// Width inside the feed-forward networks.
    pub d_ff: usize,
    /// Number of heads.
    pub n_heads: usize,
    /// Number of layers.
    pub n_layers: usize,
    /// How every layer is built, unless `pattern` overrides it; not `parallel`. A `window` needs `causal`.
    #[config(default = "BlockConfig::new()")]
    pub block: BlockConfig,
    /// Which layers differ, and which share their weights.
    #[config(default = "LayerPattern::Alike", missing = "LayerPattern::Alike")]
    pub pattern: LayerPattern,
    /// Width of the memory. Default: `d_model`.
    pub d_memory: Option<usize>,
    /// Whether a position of the target sees only itself and earlier positions, or the whole target. The default is the whole
    /// target, as in burn-nn and PyTorch, where a mask of the input makes it causal. Token-by-token decoding needs it; the
    /// object queries of a DETR (arXiv:2005.12872) see each other.
    #[config(default = false, missing = true)]
    pub causal: bool,
    /// Whether a final norm follows the stack. Default: yes, unless the block is post-norm, whose sums are normalised already.
    pub final_norm: Option<bool>,
}

impl TransformerDecoderConfig {
    /// Whether a module can be built.
    ///
    /// # Errors
    ///
    /// Names the fields and values that contradict each other.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.stack().validate_in("TransformerDecoderConfig")
    }

    /// Builds the module.
    ///
    /// # Panics
    ///
    /// With the sentence of [`validate`](Self::validate).
    pub fn init(&self, device: &Device) -> TransformerDecoder {
        expect_valid(self.validate());
        self.stack().init(device)
    }

    fn stack(&self) -> TransformerStackConfig {
        TransformerStackConfig {
            d_model: self.d_model,
            d_ff: self.d_ff,
            n_heads: self.n_heads,
            n_layers: self.n_layers,
            causal: self.causal,
            d_memory: Some(self.d_memory.unwrap_or(self.d_model)),
            block: self.block.clone(),
            pattern: self.pattern.clone(),
            final_norm: self.final_norm,
        }
    }
}

/// A stack of self-attention, cross-attention and feed-forward layers, built by [`TransformerDecoderConfig`],
/// [`causal`](TransformerDecoderConfig::causal) or not. For a model without an encoder, use
/// [`CausalTransformer`](crate::CausalTransformer).
///
/// A causal one decodes token by token with a [`cache_with_memory`](TransformerStack::cache_with_memory).
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
/// let memory: Tensor<3> = Tensor::random([2, 7, 32], Distribution::Default, &device);
/// let source_lengths = Tensor::from_data([7, 4], &device);
/// let input = TransformerDecoderInput::new(target, memory)
///     .memory_mask(AttentionMask::key_lengths(source_lengths));
/// assert_eq!(decoder.forward(input).dims(), [2, 5, 32]);
/// ```
pub type TransformerDecoder = TransformerStack;

/// Input of [`TransformerDecoder`]: a [`TransformerStackInput`] with a memory.
///
/// A value that does not fit makes `forward` panic, with one sentence that names it; masks that cannot be combined panic at
/// once ([`AttentionMask::and`]).
#[derive(Clone, Debug)]
pub struct TransformerDecoderInput(TransformerStackInput);

impl TransformerDecoderInput {
    /// Embedded targets `[batch, len_q, d_model]` and the encoder's memory `[batch, len_kv, d_memory]`.
    pub fn new(target: Tensor<3>, memory: Tensor<3>) -> Self {
        let memory = CrossMemory::States(memory);
        Self(TransformerStackInput::new(target).context(|context| context.memory(memory)))
    }

    /// Also hides what `mask` hides of the target, in addition to causality and earlier masks; see [`AttentionMask::and`].
    pub fn target_mask(self, mask: AttentionMask) -> Self {
        Self(self.0.mask(mask))
    }

    /// Also hides what `mask` hides of the memory, in addition to earlier masks; see [`AttentionMask::and`].
    pub fn memory_mask(self, mask: AttentionMask) -> Self {
        Self(self.0.context(|context| context.memory_mask(mask)))
    }
}

impl From<TransformerDecoderInput> for TransformerStackInput {
    fn from(input: TransformerDecoderInput) -> Self {
        input.0
    }
}
