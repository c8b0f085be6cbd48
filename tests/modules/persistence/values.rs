//! Configurations with no field at its default.

use burn::nn::Initializer;
use burn_attn::{
    BlockConfig, CacheStorage, CrossAttentionConfig, ExpertsConfig, FeedForwardActivation,
    FeedForwardConfig, HeadsConfig, KvCacheConfig, LayerPattern, MixtureOfExpertsConfig,
    MultiHeadAttentionConfig, NormConfig, NormPlacement, ProjectionBias, QkNormConfig,
    SelfAttentionConfig, TiedEmbeddingConfig, TransformerConfig, TransformerStackConfig,
    ops::RotaryLayout,
    positions::{
        AlibiConfig, LearnedConfig, PositionEncoding, RelativeBiasConfig, RotaryConfig,
        RotaryScaling, SinusoidalConfig, SinusoidalLayout, YarnScaling,
    },
};
use burn_attn_models::{
    language_model::{AbsolutePosition, LanguageModelConfig},
    seq2seq::Seq2SeqConfig,
};

const INITIALIZER: Initializer = Initializer::Normal {
    mean: 0.25,
    std: 0.125,
};

pub fn heads() -> HeadsConfig {
    HeadsConfig::new()
        .with_n_kv_heads(3)
        .with_d_head(10)
        .with_d_value_head(7)
        .with_scale(0.375)
        .with_softcap(29.0)
        .with_qk_norm(l2_qk_norm())
        .with_sinks(true)
        .with_position(PositionEncoding::Rotary(rotary()))
}

pub fn rms_qk_norm() -> QkNormConfig {
    QkNormConfig::Rms { epsilon: 0.0625 }
}

pub fn l2_qk_norm() -> QkNormConfig {
    QkNormConfig::L2 {
        factor: 7.5,
        epsilon: 0.03125,
    }
}

pub fn projection_bias() -> ProjectionBias {
    ProjectionBias {
        query: false,
        key: false,
        value: false,
        output: false,
    }
}

pub fn self_attention() -> SelfAttentionConfig {
    SelfAttentionConfig::new(15, 6)
        .with_heads(heads())
        .with_causal(true)
        .with_window(5)
        .with_dropout(0.25)
        .with_bias(projection_bias())
        .with_initializer(INITIALIZER)
}

pub fn cross_attention() -> CrossAttentionConfig {
    CrossAttentionConfig::new(15, 6)
        .with_heads(heads())
        .with_d_memory(11)
        .with_dropout(0.25)
        .with_bias(projection_bias())
        .with_initializer(INITIALIZER)
}

pub fn multi_head_attention() -> MultiHeadAttentionConfig {
    MultiHeadAttentionConfig::new(15, 6)
        .with_heads(heads())
        .with_d_key_in(11)
        .with_d_value_in(13)
        .with_dropout(0.25)
        .with_bias(projection_bias())
        .with_initializer(INITIALIZER)
}

pub fn kv_cache() -> KvCacheConfig {
    KvCacheConfig::new(31)
        .with_initial_capacity(5)
        .with_storage(CacheStorage::Int8)
}

pub fn rotary() -> RotaryConfig {
    RotaryConfig::new()
        .with_max_len(509)
        .with_base(500.0)
        .with_rotary_dim(6)
        .with_layout(RotaryLayout::Interleaved)
        .with_scaling(RotaryScaling::yarn(8.0, 61))
}

pub fn alibi() -> AlibiConfig {
    AlibiConfig::new().with_learnable(true)
}

pub fn relative() -> RelativeBiasConfig {
    RelativeBiasConfig::new()
        .with_buckets(14)
        .with_max_distance(61)
        .with_bidirectional(false)
        .with_initializer(INITIALIZER)
}

pub fn sinusoidal() -> SinusoidalConfig {
    SinusoidalConfig::new(15)
        .with_max_len(31)
        .with_max_timescale(1000)
        .with_layout(SinusoidalLayout::HalfSplit)
}

pub fn learned() -> LearnedConfig {
    LearnedConfig::new(15, 31).with_initializer(INITIALIZER)
}

pub fn block() -> BlockConfig {
    BlockConfig::new()
        .with_dropout(0.25)
        .with_attention_dropout(0.125)
        .with_norm(NormConfig::rms_norm().with_epsilon(0.125))
        .with_norm_placement(NormPlacement::Sandwich)
        .with_parallel(true)
        .with_activation(FeedForwardActivation::GeGluTanh)
        .with_bias(false)
        .with_projection_bias(ProjectionBias::all().with_output(false))
        .with_heads(heads())
        .with_window(5)
        .with_initializer(INITIALIZER)
}

pub fn norms() -> Vec<NormConfig> {
    vec![
        NormConfig::layer_norm().with_epsilon(0.125).without_bias(),
        NormConfig::rms_norm().with_epsilon(0.125),
    ]
}

pub fn feed_forward() -> FeedForwardConfig {
    FeedForwardConfig::new(15, 29)
        .with_activation(FeedForwardActivation::SwiGlu)
        .with_dropout(0.25)
        .with_bias(false)
        .with_initializer(INITIALIZER)
}

pub fn tied_embedding() -> TiedEmbeddingConfig {
    TiedEmbeddingConfig::new(23, 15)
        .with_scaled(false)
        .with_input_factor(12.0)
        .with_output_factor(0.25)
        .with_bias(true)
        .with_initializer(Some(INITIALIZER))
}

pub fn mixture_of_experts() -> MixtureOfExpertsConfig {
    MixtureOfExpertsConfig::new(15, 29, 7, 3)
        .with_norm_topk_prob(false)
        .with_router_bias(true)
        .with_activation(FeedForwardActivation::ClampedSwiGlu)
        .with_dropout(0.25)
        .with_bias(true)
        .with_initializer(INITIALIZER)
}

pub fn experts() -> ExpertsConfig {
    ExpertsConfig::new(7, 3)
        .with_d_ff(17)
        .with_norm_topk_prob(false)
        .with_router_bias(true)
}

pub fn yarn() -> YarnScaling {
    YarnScaling::new(8.0, 61)
        .with_beta_fast(31.0)
        .with_beta_slow(1.25)
        .with_attention_factor(1.5)
        .with_truncate(false)
}

pub fn stack() -> TransformerStackConfig {
    TransformerStackConfig::new(15, 29, 3, 2)
        .with_causal(true)
        .with_d_memory(11)
        .with_block(block())
        .with_pattern(LayerPattern::Shared(1))
        .with_final_norm(true)
}

pub fn transformer() -> TransformerConfig {
    TransformerConfig::new(15, 29, 6, 2, 4)
        .with_block(block())
        .with_final_norm(true)
}

pub fn seq2seq() -> Seq2SeqConfig {
    Seq2SeqConfig::new(23)
        .with_d_model(15)
        .with_n_heads(3)
        .with_n_encoder_layers(3)
        .with_n_decoder_layers(5)
        .with_d_ff(29)
        .with_dropout(0.25)
        .with_max_len(31)
        .with_norm_placement(NormPlacement::Sandwich)
}

pub fn language_model() -> LanguageModelConfig {
    LanguageModelConfig::new(23)
        .with_d_model(15)
        .with_n_heads(6)
        .with_n_layers(5)
        .with_d_ff(29)
        .with_max_len(31)
        .with_block(block())
        .with_absolute_position(AbsolutePosition::Learned)
        .with_scaled_embedding(false)
        .with_tied(false)
}
