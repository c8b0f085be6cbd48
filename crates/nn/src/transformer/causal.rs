//! The decoder-only stack of language models: every position looks at itself and what came before.

use burn::{
    module::Module,
    tensor::{Device, Tensor},
};
use burn_attn_derive::Config;
use burn_attn_ops::AttentionMask;

use super::{BlockConfig, Norm, TransformerLayer, block::LayerParts, layer};
use crate::{
    KvCache, KvCacheConfig, SelfAttentionInput,
    error::{ConfigError, expect_valid},
};

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
    /// How every layer is built.
    #[config(default = "BlockConfig::new()")]
    pub block: BlockConfig,
    /// Whether a last norm follows the stack. Default: unless the block is post-norm, whose sums are normalised.
    pub final_norm: Option<bool>,
}

impl CausalTransformerConfig {
    /// Whether a module can be built.
    ///
    /// # Errors
    ///
    /// Names the fields and values that contradict each other.
    pub fn validate(&self) -> Result<(), ConfigError> {
        const NAME: &str = "CausalTransformerConfig";
        self.parts().validate(NAME, true)?;
        ConfigError::check_positive(NAME, &[("n_layers", self.n_layers)])
    }

    /// Builds the module.
    ///
    /// # Panics
    ///
    /// With the sentence of [`validate`](Self::validate).
    pub fn init(&self, device: &Device) -> CausalTransformer {
        expect_valid(self.validate());
        let parts = self.parts();
        CausalTransformer {
            layers: (0..self.n_layers)
                .map(|_| TransformerLayer::new(&parts, true, device))
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

/// A stack of causal self-attention and feed-forward layers: the decoder-only transformer of GPT and Llama.
///
/// Its layers are those of a [`TransformerEncoder`](crate::TransformerEncoder), but no position sees a later one. It
/// reads embedded tokens; [`TiedEmbedding`](crate::TiedEmbedding) makes them, and logits of what comes out.
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
/// use burn_attn::{CausalTransformerConfig, CausalTransformerInput};
///
/// let device = Device::default();
/// let model = CausalTransformerConfig::new(32, 64, 4, 2).init(&device);
/// let x = Tensor::random([2, 7, 32], Distribution::Default, &device);
/// assert_eq!(model.forward(CausalTransformerInput::new(x)).dims(), [2, 7, 32]);
/// ```
#[derive(Module, Debug)]
pub struct CausalTransformer {
    /// The layers, first to last.
    pub layers: Vec<TransformerLayer>,
    /// The last norm, if there is one.
    pub norm: Option<Norm>,
}

/// What [`CausalTransformer`] reads.
#[derive(Clone, Debug)]
pub struct CausalTransformerInput {
    x: Tensor<3>,
    mask: AttentionMask,
}

impl CausalTransformerInput {
    /// A batch of embedded sequences, `[batch, len, d_model]`.
    pub fn new(x: Tensor<3>) -> Self {
        Self {
            x,
            mask: AttentionMask::none(),
        }
    }

    /// Which positions may be seen; later ones are hidden anyhow. Several masks all hide, as by [`AttentionMask::and`].
    pub fn mask(mut self, mask: AttentionMask) -> Self {
        self.mask = self.mask.and(mask);
        self
    }
}

/// What [`CausalTransformer`] returns when asked for its weights.
#[derive(Clone, Debug)]
pub struct CausalTransformerOutput {
    /// `[batch, len, d_model]`
    pub states: Tensor<3>,
    /// One `[batch, heads, len, len]` a layer.
    pub weights: Vec<Tensor<4>>,
}

impl CausalTransformer {
    /// The states of every position.
    ///
    /// # Shapes
    ///
    /// - input, output: `[batch, len, d_model]`
    ///
    /// # Panics
    ///
    /// When the width is not `d_model` or the mask does not fit.
    pub fn forward(&self, input: CausalTransformerInput) -> Tensor<3> {
        let CausalTransformerInput { x, mask } = input;
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
    /// As [`forward`](Self::forward); see [`CausalTransformerOutput`].
    ///
    /// # Panics
    ///
    /// As [`forward`](Self::forward).
    pub fn forward_with_weights(&self, input: CausalTransformerInput) -> CausalTransformerOutput {
        let CausalTransformerInput { x, mask } = input;
        let (states, weights) =
            layer::forward(&self.layers, self.norm.as_ref(), x, |attention, x| {
                let input = SelfAttentionInput::new(x).mask(mask.clone());
                let output = attention.forward_with_weights(input);
                (output.context, output.weights)
            });
        CausalTransformerOutput { states, weights }
    }

    /// An empty cache for [`forward_cached`](Self::forward_cached): one [`KvCache`] a layer.
    ///
    /// # Panics
    ///
    /// When a size of `config` is zero, or its `max_len` is more than the positions of a rotary encoding.
    pub fn cache(&self, batch: usize, config: &KvCacheConfig) -> Vec<KvCache> {
        let attentions = self.layers.iter().map(|layer| &layer.attention);
        attentions
            .map(|attention| {
                layer::check_room("CausalTransformer", attention, config);
                attention.cache(batch, config)
            })
            .collect()
    }

    /// The states of the next tokens of each sequence, which join the cache: the same as [`forward`](Self::forward) of the whole
    /// sequences has there.
    ///
    /// Sequence `b` has `lengths[b]` new tokens; what stands behind them is padding.
    ///
    /// # Shapes
    ///
    /// - `x`, output: `[batch, len, d_model]`
    ///
    /// # Panics
    ///
    /// When the cache is another stack's, of another batch or dtype, or full.
    pub fn forward_cached(
        &self,
        x: Tensor<3>,
        lengths: &[usize],
        cache: &mut [KvCache],
    ) -> Tensor<3> {
        layer::check_caches("CausalTransformer", self.layers.len(), cache.iter());
        let mut caches = cache.iter_mut();
        let (states, _) = layer::forward(&self.layers, self.norm.as_ref(), x, |attention, x| {
            let input = SelfAttentionInput::new(x).lengths(lengths);
            let cache = caches.next().expect("as many caches as layers");
            (attention.forward_cached(input, cache), ())
        });
        states
    }
}
