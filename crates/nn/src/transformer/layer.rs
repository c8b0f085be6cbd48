//! The layer of every stack: self-attention, cross-attention if there is a memory, feed-forward network.

use burn::{
    module::Module,
    tensor::{Device, Tensor},
};
use burn_attn_derive::Config;

use super::{
    BlockConfig, FeedForward, FeedForwardConfig, LayerCache, LayerInput, MixtureOfExperts,
    MixtureOfExpertsConfig, NormPlacement, SublayerConnection,
};
use crate::{
    CrossAttention, CrossAttentionConfig, HeadsConfig, KvCacheConfig, MixerCall, MixerState,
    SelfAttention, SelfAttentionConfig, TokenMixer,
    error::{ConfigError, expect_valid},
    positions::PositionEncoding,
    trace::{Kept, Trace},
};

/// Configuration of [`TransformerLayer`].
#[derive(Config, Debug)]
pub struct TransformerLayerConfig {
    /// Width of the input and output.
    pub d_model: usize,
    /// Width inside the feed-forward network.
    pub d_ff: usize,
    /// Number of heads.
    pub n_heads: usize,
    /// Whether a position sees only itself and earlier positions (a decoder) or all positions (an encoder).
    #[config(default = false)]
    pub causal: bool,
    /// Width of the memory for cross-attention. Default: no cross-attention.
    pub d_memory: Option<usize>,
    /// How the layer is built: not `parallel` with cross-attention.
    #[config(default = "BlockConfig::new()")]
    pub block: BlockConfig,
}

impl TransformerLayerConfig {
    /// Whether a module can be built. The error names the fields and values that contradict each other.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.validate_in("TransformerLayerConfig")
    }

    /// [`validate`](Self::validate), with errors in the name of `config`.
    pub(super) fn validate_in(&self, config: &'static str) -> Result<(), ConfigError> {
        let block = &self.block;
        self.heads().sizes(config, self.d_model, self.n_heads)?;
        ConfigError::check_positive(config, &[("d_ff", self.d_ff())])?;
        block.check_residual(config)?;
        block.projection_bias().of_one_input(config)?;
        if let Some(d_memory) = self.d_memory {
            ConfigError::check_positive(config, &[("d_memory", d_memory)])?;
            ConfigError::check(config, !block.shared_key_value, || {
                "shared_key_value is true, but a layer with cross-attention has keys and values of its own".into()
            })?;
            ConfigError::check(config, !block.parallel, || {
                "parallel is true, but a parallel layer has no place for cross-attention".into()
            })?;
        }
        let (parallel, placement) = (block.parallel, block.norm_placement);
        let may_separate = parallel && placement == NormPlacement::Pre;
        ConfigError::check(config, may_separate || !block.separate_norms, || {
            format!(
                "separate_norms is for parallel layers with norm_placement Pre, but parallel is {parallel} and norm_placement {placement:?}"
            )
        })?;
        let is_one_sum = block.is_one_sum();
        let has_branches = block.layer_scale.is_some() || block.stochastic_depth > 0.0;
        ConfigError::check(config, !is_one_sum || !has_branches, || {
            format!(
                "layer_scale and stochastic_depth are for one sublayer at a time, but parallel layers with norm_placement {placement:?} \
                 add the sum of two"
            )
        })?;
        let (dropout, of_network) = (block.dropout, block.feed_forward_residual_dropout());
        ConfigError::check(config, !is_one_sum || of_network == dropout, || {
            format!(
                "feed_forward_residual_dropout {of_network} differs from dropout {dropout}, but parallel layers with norm_placement \
                 {placement:?} drop from the sum of two"
            )
        })?;
        let may_lack_norm = !parallel && placement == NormPlacement::Pre;
        ConfigError::check(config, may_lack_norm || block.attention_norm, || {
            format!(
                "attention_norm false is for norm_placement Pre without parallel, but parallel is {parallel} and norm_placement {placement:?}"
            )
        })?;
        if let Some((experts, mixture)) = block.experts.as_ref().zip(self.mixture_of_experts()) {
            if let Some(d_ff) = experts.d_ff {
                ConfigError::check_positive(config, &[("experts.d_ff", d_ff)])?;
            }
            let valid = mixture.validate();
            valid.map_err(|error| error.in_name_of(config))?;
        }
        let norm = block.norm.validate();
        norm.map_err(|error| error.in_name_of(config))
    }

    /// Builds the module, or panics with the sentence of [`validate`](Self::validate).
    pub fn init(&self, device: &Device) -> TransformerLayer {
        expect_valid(self.validate());
        let attention = self.self_attention();
        let attention = attention.init_with(self.block.shared_key_value, device);
        self.init_with(attention, device)
    }

    /// As [`init`](Self::init), with another mixer of tokens than the self-attention that the fields describe. These are checked all the same, but
    /// say nothing of the mixer: whether it is causal, its heads, window, biases, initialiser and dropout are its own.
    pub fn init_with<M: TokenMixer>(&self, mixer: M, device: &Device) -> TransformerLayer<M> {
        expect_valid(self.validate());
        let block = &self.block;
        let has_network_norm = !block.parallel || block.separate_norms;
        let residual =
            |has_norm, dropout| block.residual_with(has_norm, dropout, self.d_model, device);
        let cross = self.d_memory.map(|d_memory| self.cross_attention(d_memory));
        let network = block.experts.is_none().then(|| self.feed_forward());
        let experts = self.mixture_of_experts();
        TransformerLayer {
            self_attention: mixer,
            self_attention_residual: residual(block.attention_norm, block.dropout),
            cross_attention: cross.as_ref().map(|attention| attention.init(device)),
            cross_attention_residual: cross.map(|_| residual(true, block.dropout)),
            feed_forward: network.map(|network| network.init(device)),
            mixture_of_experts: experts.map(|experts| experts.init(device)),
            feed_forward_residual: (!block.is_one_sum())
                .then(|| residual(has_network_norm, block.feed_forward_residual_dropout())),
            parallel: block.parallel,
        }
    }

    pub(super) fn heads(&self) -> HeadsConfig {
        self.block.heads.directed(self.causal)
    }

    /// Takes out the position encoding, with the width of a head, that all layers of a stack which are configured alike share: a rotary table,
    /// which would be equal in each layer, or T5's learned bias, of which a stack has only one.
    pub(super) fn take_shared_position(&mut self) -> Option<(PositionEncoding, usize)> {
        let heads = self.heads();
        if let PositionEncoding::None | PositionEncoding::Alibi(_) = heads.position {
            return None;
        }
        self.block.heads.position = PositionEncoding::None;
        let d_head = heads.d_head.unwrap_or(self.d_model / self.n_heads);
        Some((heads.position, d_head))
    }

    fn self_attention(&self) -> SelfAttentionConfig {
        SelfAttentionConfig::new(self.d_model, self.n_heads)
            .with_heads(self.heads())
            .with_causal(self.causal)
            .with_window(self.block.window)
            .with_dropout(self.block.attention_dropout())
            .with_bias(self.block.projection_bias())
            .with_initializer(self.block.initializer.clone())
    }

    fn cross_attention(&self, d_memory: usize) -> CrossAttentionConfig {
        // Positions of a sequence say nothing about those of a memory.
        let heads = self.block.heads.clone();
        CrossAttentionConfig::new(self.d_model, self.n_heads)
            .with_heads(heads.with_position(PositionEncoding::None))
            .with_d_memory(d_memory)
            .with_dropout(self.block.attention_dropout())
            .with_bias(self.block.projection_bias())
            .with_initializer(self.block.initializer.clone())
    }

    fn feed_forward(&self) -> FeedForwardConfig {
        let block = &self.block;
        FeedForwardConfig::new(self.d_model, self.d_ff())
            .with_activation(block.activation)
            .with_dropout(block.feed_forward_dropout())
            .with_bias(block.bias)
            .with_initializer(block.initializer.clone())
    }

    fn mixture_of_experts(&self) -> Option<MixtureOfExpertsConfig> {
        let block = &self.block;
        let experts = block.experts.as_ref()?;
        Some(MixtureOfExpertsConfig {
            d_model: self.d_model,
            d_ff: experts.d_ff.unwrap_or(self.d_ff()),
            n_experts: experts.n_experts,
            top_k: experts.top_k,
            norm_topk_prob: experts.norm_topk_prob,
            router_bias: experts.router_bias,
            router_in_f32: experts.router_in_f32,
            sigmoid: experts.sigmoid,
            expert_bias: experts.expert_bias,
            routed_scale: experts.routed_scale,
            n_groups: experts.n_groups,
            top_k_groups: experts.top_k_groups,
            d_shared: experts.d_shared,
            shared_gate: experts.shared_gate,
            activation: block.activation,
            dropout: block.feed_forward_dropout(),
            bias: block.bias,
            initializer: block.initializer.clone(),
        })
    }

    fn d_ff(&self) -> usize {
        self.block.d_ff.unwrap_or(self.d_ff)
    }
}

/// One layer of a transformer: self-attention or another [mixer of tokens](TokenMixer), cross-attention if there is a memory, and a
/// feed-forward network, each in a residual sum; if [`parallel`](BlockConfig::parallel), attention and feed-forward network in one sum.
///
/// # Source
///
/// "Attention is all you need" (arXiv:1706.03762), section 3.1. PyTorch equivalents: `nn.TransformerEncoderLayer`, and with
/// `d_memory` `nn.TransformerDecoderLayer`, with `batch_first=True`.
///
/// A layer of an encoder and a layer of a decoder ([`TransformerStack`](crate::TransformerStack) runs many):
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use burn_attn::{LayerInput, TransformerLayerConfig};
///
/// let device = Device::default();
/// let random = |shape: [usize; 3]| Tensor::random(shape, Distribution::Default, &device);
/// let encoder = TransformerLayerConfig::new(32, 64, 4).init(&device);
/// let memory = encoder.forward(random([2, 7, 32])).states;
///
/// let decoder = TransformerLayerConfig::new(24, 64, 4).with_causal(true).with_d_memory(32).init(&device);
/// let output = decoder.forward(LayerInput::new(random([2, 5, 24])).memory(memory));
/// assert_eq!(output.states.dims(), [2, 5, 24]);
/// ```
#[derive(Module, Debug)]
pub struct TransformerLayer<M = SelfAttention> {
    /// Every position attends to all positions or, if causal, to itself and earlier ones; or what takes the place of self-attention.
    pub self_attention: M,
    /// The residual sum and norm of the self-attention; in parallel layers, of both sublayers.
    pub self_attention_residual: SublayerConnection,
    /// Every position attends to the memory.
    pub cross_attention: Option<CrossAttention>,
    /// The residual sum and norm of the cross-attention.
    pub cross_attention_residual: Option<SublayerConnection>,
    /// The feed-forward network, unless the layer has experts.
    pub feed_forward: Option<FeedForward>,
    /// The experts, if the layer has them instead of a feed-forward network.
    pub mixture_of_experts: Option<MixtureOfExperts>,
    /// The residual sum and norm of the feed-forward network. In parallel layers it has a norm only if the norms are separate, and only
    /// those with pre-norm have it.
    pub feed_forward_residual: Option<SublayerConnection>,
    pub(super) parallel: bool,
}

/// Output of a [`TransformerLayer`].
#[derive(Clone, Debug)]
pub struct LayerOutput {
    /// `[batch, len, d_model]`
    pub states: Tensor<3>,
    /// `[batch, heads, len, len]`, if weights were requested and the mixer is [`SelfAttention`] or [`LatentAttention`](crate::LatentAttention).
    pub self_weights: Option<Tensor<4>>,
    /// `[batch, heads, len, len_kv]`, if weights were requested and the layer has cross-attention.
    pub cross_weights: Option<Tensor<4>>,
    /// `[batch · len, n_experts]`, if the layer has experts: for [`load_balancing_loss`](crate::load_balancing_loss), which is not for
    /// all routers.
    pub router_logits: Option<Tensor<2>>,
    pub(super) trace: Trace,
}

impl<M: TokenMixer> TransformerLayer<M> {
    /// The states of every position, `[batch, len, d_model]` as the input, at the cost of [`SelfAttention::forward`],
    /// [`CrossAttention::forward`] and [`FeedForward::forward`] or [`MixtureOfExperts::forward`].
    ///
    /// # Panics
    ///
    /// When the width is not `d_model`, a part of the input does not fit, there is a memory without cross-attention or
    /// cross-attention without a memory, or the layer has [shared keys and values](BlockConfig::shared_key_value), which only a stack gives it.
    pub fn forward(&self, input: impl Into<LayerInput>) -> LayerOutput {
        self.run(input.into(), None, &mut MixerCall::default())
    }

    /// Every step of [`forward`](Self::forward), by name. Panics as [`forward`](Self::forward); cost as
    /// [`SelfAttention::forward_traced`](crate::SelfAttention::forward_traced).
    pub fn forward_traced(&self, input: impl Into<LayerInput>) -> Trace {
        let input = input.into().kept(Kept::Steps);
        self.run(input, None, &mut MixerCall::default()).trace
    }

    /// An empty cache for [`forward_cached`](Self::forward_cached). A layer with cross-attention needs a memory in it:
    /// [`LayerCache::memory`]. Panics as [`TokenMixer::cache`] does: [`SelfAttention::cache`].
    pub fn cache(&self, batch: usize, config: &KvCacheConfig) -> LayerCache<M::State> {
        LayerCache {
            tokens: self.self_attention.cache(batch, config),
            memory: None,
        }
    }

    /// As [`forward`](Self::forward), for the next tokens of each sequence, which are added to the [cache](crate::KvCache#decoding). The memory is
    /// that of the cache.
    ///
    /// # Panics
    ///
    /// As [`SelfAttention::forward_cached`], and when the input has a memory, requests weights, or has a mask of the memory that is
    /// aligned bottom-right by name, or an offset, key positions or a position encoding for the memory, or the cache has no memory for the
    /// cross-attention.
    pub fn forward_cached(
        &self,
        input: impl Into<LayerInput>,
        cache: &mut LayerCache<M::State>,
    ) -> LayerOutput {
        self.run_cached(input.into(), cache, &mut MixerCall::default())
    }

    pub(super) fn run_cached(
        &self,
        input: LayerInput,
        cache: &mut LayerCache<M::State>,
        call: &mut MixerCall,
    ) -> LayerOutput {
        let input = input.cached(cache.tokens.lengths(), cache.memory.clone());
        self.run(input, Some(&mut cache.tokens), call)
    }

    /// Whether attention and feed-forward network are summed, instead of following each other.
    pub fn is_parallel(&self) -> bool {
        self.parallel
    }
}
