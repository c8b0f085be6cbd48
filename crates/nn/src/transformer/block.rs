//! How the layers of a stack are built: what encoder, decoder and causal stack choose alike.

use burn::{nn::Initializer, tensor::Device};
use burn_attn_derive::Config;

use super::{ExpertsConfig, FeedForwardActivation, Norm, NormConfig, NormPlacement};
use crate::{HeadsConfig, ProjectionBias, attention::heads_builders};

/// How every layer of a stack is built, besides its sizes: by default as burn-nn 0.22.1 builds the layers of its transformers, post-norm with
/// layer norm, exact GELU and dropout 0.1.
///
/// # Example
///
/// A small Llama.
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use burn_attn::{
///     BlockConfig, CausalTransformerConfig, CausalTransformerInput, FeedForwardActivation, NormConfig, NormPlacement,
/// };
///
/// let device = Device::default();
/// let block = BlockConfig::new()
///     .with_norm(NormConfig::rms_norm())
///     .with_norm_placement(NormPlacement::Pre)
///     .with_activation(FeedForwardActivation::SwiGlu)
///     .with_bias(false)
///     .with_dropout(0.0);
/// let model = CausalTransformerConfig::new(32, 64, 4, 2).with_block(block).init(&device);
/// let x = Tensor::random([2, 7, 32], Distribution::Default, &device);
/// assert_eq!(model.forward(CausalTransformerInput::new(x)).dims(), [2, 7, 32]);
/// ```
#[derive(Config, Debug)]
pub struct BlockConfig {
    /// Probability of dropping a number in training, in attention weights, feed-forward and residual sums.
    #[config(default = 0.1)]
    pub dropout: f64,
    /// Probability of dropping an attention weight in training. Default: `dropout`.
    pub attention_dropout: Option<f64>,
    /// Which norm.
    #[config(default = "NormConfig::layer_norm()")]
    pub norm: NormConfig,
    /// Where the norms are.
    #[config(default = "NormPlacement::Post")]
    pub norm_placement: NormPlacement,
    /// Whether attention and feed-forward read the same norm and are added together, instead of one after the other:
    /// `x + attention(norm(x)) + feed_forward(norm(x))` (GPT-J; PaLM, arXiv:2204.02311, section 2). Not with
    /// cross-attention.
    #[config(default = false)]
    pub parallel: bool,
    /// In parallel layers: whether the feed-forward network reads a norm of its own (GPT-NeoX, arXiv:2204.06745). Pre-norm only.
    #[config(default = false, missing = false)]
    pub separate_norms: bool,
    /// Between the linear layers of the feed-forward network.
    #[config(default = "FeedForwardActivation::Gelu")]
    pub activation: FeedForwardActivation,
    /// Several feed-forward networks, of which every position uses a few (Mixtral, arXiv:2401.04088; gpt-oss, arXiv:2508.10925). Default:
    /// one, which all positions use.
    pub experts: Option<ExpertsConfig>,
    /// Whether the projections and the feed-forward network add a learned bias.
    #[config(default = true)]
    pub bias: bool,
    /// Which projections of the attentions add a learned bias. Default: all or none, as `bias` says. Qwen 2 (arXiv:2407.10671)
    /// has those of query, key and value alone: `ProjectionBias::all().with_output(false)`, and `bias` false.
    pub projection_bias: Option<ProjectionBias>,
    /// What the heads of every attention look like. Their position is that of the self-attention: cross-attention has none.
    #[config(default = "HeadsConfig::new()")]
    pub heads: HeadsConfig,
    /// In causal self-attention: how many positions before itself a position sees; layers that are not causal refuse it. Default: all.
    /// A published `sliding_window` counts the position itself: Mistral 7B's 4096 is `Some(4095)`.
    pub window: Option<usize>,
    /// How the projections and the feed-forward network start.
    #[config(
        default = "Initializer::KaimingUniform { gain: 1.0 / 3.0f64.sqrt(), fan_out_only: false }"
    )]
    pub initializer: Initializer,
}

heads_builders!(BlockConfig);

impl BlockConfig {
    pub(super) fn projection_bias(&self) -> ProjectionBias {
        self.projection_bias.unwrap_or(self.bias.into())
    }

    pub(super) fn attention_dropout(&self) -> f64 {
        self.attention_dropout.unwrap_or(self.dropout)
    }

    /// The norm behind a stack: as `wanted`, else if its sums are not normalised already.
    pub(super) fn final_norm(
        &self,
        wanted: Option<bool>,
        d_model: usize,
        device: &Device,
    ) -> Option<Norm> {
        wanted
            .unwrap_or(self.norm_placement != NormPlacement::Post)
            .then(|| self.norm.init(d_model, device))
    }
}
