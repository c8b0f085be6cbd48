//! How the layers of a stack are built: what encoder, decoder and causal stack choose alike.

use burn::{nn::Initializer, tensor::Device};
use burn_attn_derive::Config;

use super::{
    FeedForward, FeedForwardActivation, FeedForwardConfig, Norm, NormConfig, NormPlacement,
    Residual,
};
use crate::{
    CrossAttention, CrossAttentionConfig, HeadsConfig, ProjectionBias, SelfAttention,
    SelfAttentionConfig, attention::heads_builders, error::ConfigError,
    positions::PositionEncoding,
};

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
    /// Between the linear layers of the feed-forward network.
    #[config(default = "FeedForwardActivation::Gelu")]
    pub activation: FeedForwardActivation,
    /// Whether the projections and the feed-forward network add a learned bias.
    #[config(default = true)]
    pub bias: bool,
    /// Which projections of the attentions add a learned bias. Default: all or none, as `bias` says. Qwen 2 (arXiv:2407.10671)
    /// has those of query, key and value alone: `ProjectionBias::all().with_output(false)`, and `bias` false.
    pub projection_bias: Option<ProjectionBias>,
    /// What the heads of every attention look like. Their position is that of the self-attention: cross-attention has none.
    #[config(default = "HeadsConfig::new()")]
    pub heads: HeadsConfig,
    /// In causal self-attention: how many positions before itself a position sees; a stack without one refuses it. Default: all.
    /// A published `sliding_window` counts the position itself: Mistral 7B's 4096 is `Some(4095)`.
    pub window: Option<usize>,
    /// How the projections and the feed-forward network start.
    #[config(
        default = "Initializer::KaimingUniform { gain: 1.0 / 3.0f64.sqrt(), fan_out_only: false }"
    )]
    pub initializer: Initializer,
}

heads_builders!(BlockConfig);

/// The sizes of a stack and its [`BlockConfig`], which together make the parts of a layer.
pub(super) struct LayerParts<'a> {
    pub(super) d_model: usize,
    pub(super) d_ff: usize,
    pub(super) n_heads: usize,
    pub(super) block: &'a BlockConfig,
}

impl LayerParts<'_> {
    /// Whether the parts can be built, with this self-attention; `config` is the configuration that the user wrote.
    pub(super) fn validate(&self, config: &'static str, causal: bool) -> Result<(), ConfigError> {
        self.block
            .heads
            .directed(causal)
            .validate(config, self.d_model, self.n_heads)?;
        ConfigError::check_positive(config, &[("d_ff", self.d_ff)])?;
        ConfigError::check_dropout(config, self.block.dropout)?;
        let attention_dropout = self.attention_dropout();
        if !(0.0..1.0).contains(&attention_dropout) {
            let reason = format!("attention_dropout must be in [0, 1), got {attention_dropout}");
            return Err(ConfigError::Invalid { config, reason });
        }
        let bias = self.projection_bias();
        let of_one_input = [
            ("query", bias.query),
            ("key", bias.key),
            ("value", bias.value),
        ];
        ProjectionBias::shared(config, &of_one_input)?;
        let norm = self.block.norm.validate();
        norm.map_err(|error| error.in_name_of(config))
    }

    /// [`validate`](Self::validate) of layers with cross-attention.
    pub(super) fn validate_with_memory(
        &self,
        config: &'static str,
        causal: bool,
    ) -> Result<(), ConfigError> {
        self.validate(config, causal)?;
        if !self.block.parallel {
            return Ok(());
        }
        let reason = "parallel is true, but attention and feed-forward side by side leave no place for \
            cross-attention";
        Err(ConfigError::Invalid {
            config,
            reason: reason.into(),
        })
    }

    pub(super) fn self_attention(&self, causal: bool, device: &Device) -> SelfAttention {
        SelfAttentionConfig::new(self.d_model, self.n_heads)
            .with_heads(self.block.heads.clone())
            .with_causal(causal)
            .with_window(self.block.window.filter(|_| causal))
            .with_dropout(self.attention_dropout())
            .with_bias(self.projection_bias())
            .with_initializer(self.block.initializer.clone())
            .init(device)
    }

    pub(super) fn cross_attention(&self, device: &Device) -> CrossAttention {
        // Positions of a sequence say nothing about those of a memory.
        let heads = self
            .block
            .heads
            .clone()
            .with_position(PositionEncoding::None);
        CrossAttentionConfig::new(self.d_model, self.n_heads)
            .with_heads(heads)
            .with_dropout(self.attention_dropout())
            .with_bias(self.projection_bias())
            .with_initializer(self.block.initializer.clone())
            .init(device)
    }

    fn projection_bias(&self) -> ProjectionBias {
        self.block.projection_bias.unwrap_or(match self.block.bias {
            true => ProjectionBias::all(),
            false => ProjectionBias::none(),
        })
    }

    fn attention_dropout(&self) -> f64 {
        self.block.attention_dropout.unwrap_or(self.block.dropout)
    }

    pub(super) fn feed_forward(&self, device: &Device) -> FeedForward {
        FeedForwardConfig::new(self.d_model, self.d_ff)
            .with_activation(self.block.activation)
            .with_dropout(self.block.dropout)
            .with_bias(self.block.bias)
            .with_initializer(self.block.initializer.clone())
            .init(device)
    }

    pub(super) fn residual(&self, device: &Device) -> Residual {
        Residual::new(
            self.d_model,
            self.block.dropout,
            &self.block.norm,
            self.block.norm_placement,
            device,
        )
    }

    /// The norm behind a stack: as `wanted`, else unless its sums are normalised already.
    pub(super) fn final_norm(&self, wanted: Option<bool>, device: &Device) -> Option<Norm> {
        wanted
            .unwrap_or(self.block.norm_placement != NormPlacement::Post)
            .then(|| self.block.norm.init(self.d_model, device))
    }
}
