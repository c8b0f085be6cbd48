//! The decoder-only stack of language models: every position attends to itself and earlier ones.

use burn::tensor::Device;
use burn_attn_derive::Config;

use super::{
    BlockConfig, LayerPattern, TransformerStack, TransformerStackConfig, TransformerStackInput,
};
use crate::error::{ConfigError, expect_valid};

/// Configuration of [`CausalTransformer`].
#[derive(Config, Debug)]
pub struct CausalTransformerConfig {
    /// Width of the input and output.
    pub d_model: usize,
    /// Width inside the feed-forward networks.
    pub d_ff: usize,
    /// Number of heads.
    pub n_heads: usize,
    /// Number of layers.
    pub n_layers: usize,
    /// How every layer is built, unless `pattern` overrides it.
    #[config(default = "BlockConfig::new()")]
    pub block: BlockConfig,
    /// Which layers differ, and which share their weights.
    #[config(default = "LayerPattern::Alike", missing = "LayerPattern::Alike")]
    pub pattern: LayerPattern,
    /// Whether a final norm follows the stack. Default: yes, unless the block is post-norm, whose sums are normalised already.
    pub final_norm: Option<bool>,
}

impl CausalTransformerConfig {
    /// Whether a module can be built.
    ///
    /// # Errors
    ///
    /// Names the fields and values that contradict each other.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.stack().validate_in("CausalTransformerConfig")
    }

    /// Builds the module.
    ///
    /// # Panics
    ///
    /// With the sentence of [`validate`](Self::validate).
    pub fn init(&self, device: &Device) -> CausalTransformer {
        expect_valid(self.validate());
        self.stack().init(device)
    }

    fn stack(&self) -> TransformerStackConfig {
        TransformerStackConfig {
            d_model: self.d_model,
            d_ff: self.d_ff,
            n_heads: self.n_heads,
            n_layers: self.n_layers,
            causal: true,
            d_memory: None,
            block: self.block.clone(),
            pattern: self.pattern.clone(),
            final_norm: self.final_norm,
        }
    }
}

/// A stack of causal self-attention and feed-forward layers, built by [`CausalTransformerConfig`]: the decoder-only
/// transformer of GPT and Llama.
///
/// It reads embedded tokens. [`TiedEmbedding`](crate::TiedEmbedding) makes them, and turns the output into logits. It decodes
/// token by token with a [`cache`](TransformerStack::cache).
///
/// # Source
///
/// "Generating Wikipedia by summarizing long sequences" (arXiv:1801.10198), section 4.2.3; GPT-2. PyTorch equivalent:
/// `nn.TransformerEncoder` with `batch_first=True`, called with the `mask` of
/// `nn.Transformer.generate_square_subsequent_mask(len)` and `is_causal=True`.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use burn_attn::{CausalTransformerConfig, CausalTransformerInput, KvCacheConfig};
///
/// let device = Device::default();
/// let model = CausalTransformerConfig::new(32, 64, 4, 2).init(&device);
/// let x = Tensor::<3>::random([2, 7, 32], Distribution::Default, &device);
/// let whole = model.forward(CausalTransformerInput::new(x.clone()));
///
/// let mut cache = model.cache(2, &KvCacheConfig::new(100));
/// model.forward_cached(x.clone().narrow(1, 0, 6), &[6, 6], &mut cache);
/// let last = model.forward_cached(x.narrow(1, 6, 1), &[1, 1], &mut cache);
/// whole.narrow(1, 6, 1).into_data().assert_approx_eq::<f32>(&last.into_data(), Default::default());
/// ```
pub type CausalTransformer = TransformerStack;

/// Input of [`CausalTransformer`].
pub type CausalTransformerInput = TransformerStackInput;
