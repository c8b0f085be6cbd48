//! How the layers of a stack are built: choices common to encoder, decoder and causal stack.

use burn::{
    nn::{DropoutConfig, Initializer},
    tensor::Device,
};
use burn_attn_derive::Config;

use super::{ExpertsConfig, FeedForwardActivation, NormPlacement, SublayerConnection};
use crate::{
    ConfigError, HeadsConfig, NormConfig, ProjectionBias, attention::heads_builders,
    error::expect_valid, linear::kaiming_uniform,
};

/// How every layer of a stack is built, apart from its sizes. The defaults are those of burn-nn 0.22.1's transformers:
/// post-norm, layer norm, exact GELU, dropout 0.1.
///
/// A small Llama:
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use burn_attn::{BlockConfig, FeedForwardActivation, NormConfig, NormPlacement, TransformerStackConfig};
///
/// let device = Device::default();
/// let block = BlockConfig::new()
///     .with_norm(NormConfig::rms_norm())
///     .with_norm_placement(NormPlacement::Pre)
///     .with_activation(FeedForwardActivation::SwiGlu)
///     .with_bias(false)
///     .with_dropout(0.0);
/// let model = TransformerStackConfig::causal(32, 64, 4, 2).with_block(block).init(&device);
/// let x = Tensor::<3>::random([2, 7, 32], Distribution::Default, &device);
/// assert_eq!(model.forward(x).dims(), [2, 7, 32]);
/// ```
#[derive(Config, Debug)]
pub struct BlockConfig {
    /// Dropout probability in training: of attention weights, in feed-forward networks and in residual sums.
    #[config(default = 0.1)]
    pub dropout: f64,
    /// Probability of dropping an attention weight in training. Default: `dropout`.
    pub attention_dropout: Option<f64>,
    /// Probability of dropping an activation between the linear layers of a feed-forward network in training: 0 in BERT and GPT-2.
    /// Default: `dropout`.
    pub feed_forward_dropout: Option<f64>,
    /// Probability of dropping a number that the feed-forward network, or the experts, add to the residual sum in training: 0 in ALBERT of
    /// `transformers`. Default: `dropout`.
    pub feed_forward_residual_dropout: Option<f64>,
    /// The kind of norm.
    #[config(default = "NormConfig::layer_norm()")]
    pub norm: NormConfig,
    /// Where the norms are.
    #[config(default = "NormPlacement::Post")]
    pub norm_placement: NormPlacement,
    /// Whether attention and feed-forward network read the same norm and are summed, instead of following each other:
    /// `x + attention(norm(x)) + feed_forward(norm(x))` (GPT-J; PaLM, arXiv:2204.02311, section 2). Not possible with
    /// cross-attention.
    #[config(default = false)]
    pub parallel: bool,
    /// In parallel layers: whether the feed-forward network reads a second norm (GPT-NeoX, arXiv:2204.06745). Pre-norm only.
    #[config(default = false, missing = false)]
    pub separate_norms: bool,
    /// Whether self-attention has a norm. Without one it reads the layer's input as it is, with [`Pre`](NormPlacement::Pre) only: the first
    /// layer of ModernBERT (arXiv:2412.13663), whose embeddings are normalised.
    #[config(default = true, missing = true)]
    pub attention_norm: bool,
    /// The initial value of a learned factor per channel on what each sublayer adds: LayerScale (CaiT, arXiv:2103.17239, section 2; DINOv2).
    /// Default: no factor.
    pub layer_scale: Option<f64>,
    /// Probability, in training, that a sublayer adds nothing to a sequence; what is kept is divided by one minus the probability ("Deep
    /// networks with stochastic depth", arXiv:1603.09382). Models that let it grow with depth have a block per layer
    /// ([`LayerPattern::Cycle`](crate::LayerPattern::Cycle)). [`seed`](crate::seed) makes runs repeatable.
    #[config(default = 0.0, missing = 0.0)]
    pub stochastic_depth: f64,
    /// Width inside the feed-forward network. Default: that of the layer or stack.
    pub d_ff: Option<usize>,
    /// The activation inside the feed-forward network.
    #[config(default = "FeedForwardActivation::Gelu")]
    pub activation: FeedForwardActivation,
    /// Several feed-forward networks, of which every position uses a few (Mixtral, arXiv:2401.04088; gpt-oss,
    /// arXiv:2508.10925). Default: one network, used by all positions.
    pub experts: Option<ExpertsConfig>,
    /// Whether the projections and the feed-forward network add a learned bias.
    #[config(default = true)]
    pub bias: bool,
    /// Which projections of the attentions add a learned bias. Default: all or none, according to `bias`. Qwen 2
    /// (arXiv:2407.10671) has biases for query, key and value only: `ProjectionBias::all().with_output(false)`, and `bias`
    /// false.
    pub projection_bias: Option<ProjectionBias>,
    /// The heads of every attention. The position encoding is for self-attention only: cross-attention has none.
    #[config(default = "HeadsConfig::new()")]
    pub heads: HeadsConfig,
    /// In self-attention: how many positions before itself a position sees, and, in layers that are not causal, after itself, as in
    /// [`SelfAttentionConfig::window`](crate::SelfAttentionConfig::window). Default: all.
    pub window: Option<usize>,
    /// Whether self-attention projects no keys and values, and attends to those of the nearest earlier layer that does, with the same
    /// window ("Reducing transformer key-value cache size with cross-layer attention", arXiv:2405.12981; the last layers of Gemma 3n). Both
    /// need the same position encoding and widths of the heads. The keys are as the earlier layer has normalised and rotated them: `qk_norm`
    /// is for the queries alone, and is [`L2`](crate::QkNormConfig::L2) in both layers or in neither. Such layers run only in
    /// stacks, without cross-attention, whose caches then have fewer layers. Learned ALiBi slopes are each layer's own: layers with one cache then compute their position biases again for every token.
    #[config(default = false, missing = false)]
    pub shared_key_value: bool,
    /// How the projections and the feed-forward network are initialised. Default: as Burn's `Linear`.
    #[config(default = "kaiming_uniform()")]
    pub initializer: Initializer,
}

heads_builders!(BlockConfig);

impl BlockConfig {
    /// Builds the residual sum around a sublayer of this width, with the norms, the dropout, the layer scale and the stochastic depth of this
    /// block: for layers of other sublayers than those of a [`TransformerLayer`](crate::TransformerLayer). Panics when the norm is not valid,
    /// a probability is not in `[0, 1)`, the layer scale is not positive and finite, or the width is 0.
    pub fn residual(&self, d_model: usize, device: &Device) -> SublayerConnection {
        expect_valid(self.check_residual("BlockConfig"));
        self.residual_with(true, self.dropout, d_model, device)
    }

    pub(super) fn residual_with(
        &self,
        has_norm: bool,
        dropout: f64,
        d_model: usize,
        device: &Device,
    ) -> SublayerConnection {
        let norm = || self.norm.init(d_model, device);
        let is_sandwich = self.norm_placement == NormPlacement::Sandwich;
        let scale = |value| Initializer::Constant { value }.init([d_model], device);
        SublayerConnection {
            norm: has_norm.then(norm),
            output_norm: (has_norm && is_sandwich).then(norm),
            scale: self.layer_scale.map(scale),
            dropout: DropoutConfig::new(dropout).init(),
            stochastic_depth: DropoutConfig::new(self.stochastic_depth).init(),
            placement: self.norm_placement,
        }
    }

    /// Whether one residual sum adds both sublayers of a parallel layer.
    pub(super) fn is_one_sum(&self) -> bool {
        self.parallel && self.norm_placement != NormPlacement::Pre
    }

    pub(super) fn projection_bias(&self) -> ProjectionBias {
        self.projection_bias.unwrap_or(self.bias.into())
    }

    pub(super) fn attention_dropout(&self) -> f64 {
        self.attention_dropout.unwrap_or(self.dropout)
    }

    pub(super) fn feed_forward_dropout(&self) -> f64 {
        self.feed_forward_dropout.unwrap_or(self.dropout)
    }

    pub(super) fn feed_forward_residual_dropout(&self) -> f64 {
        self.feed_forward_residual_dropout.unwrap_or(self.dropout)
    }

    /// Fails if a number of the residual sums, or another probability, is out of range.
    pub(super) fn check_residual(&self, config: &'static str) -> Result<(), ConfigError> {
        ConfigError::check_finite_positive(config, &[("layer_scale", self.layer_scale)])?;
        let residual = self.feed_forward_residual_dropout();
        for (field, probability) in [
            ("dropout", self.dropout),
            ("attention_dropout", self.attention_dropout()),
            ("feed_forward_dropout", self.feed_forward_dropout()),
            ("feed_forward_residual_dropout", residual),
            ("stochastic_depth", self.stochastic_depth),
        ] {
            ConfigError::check_probability(config, field, probability)?;
        }
        Ok(())
    }
}
