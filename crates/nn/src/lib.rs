#![doc = include_str!("lib.md")]
#![warn(missing_docs)]

mod attention;
mod cache;
mod dropout;
mod embed;
mod error;
mod linear;
mod mixer;
mod norm;
mod parameter;
pub mod positions;
mod softcap;
mod tied_embedding;
mod trace;
mod transformer;

pub use attention::{
    AttentionContext, AttentionOutput, CrossAttention, CrossAttentionConfig, CrossAttentionInput,
    CrossMemory, Heads, HeadsConfig, LatentAttention, LatentAttentionConfig, MultiHeadAttention,
    MultiHeadAttentionConfig, MultiHeadAttentionInput, ProjectedMemory, ProjectionBias, QkNorm,
    QkNormConfig, SelfAttention, SelfAttentionConfig, SelfAttentionInput, padding,
};
pub use burn_attn_ops as ops;
pub use cache::{CacheStorage, KvCache, KvCacheConfig};
pub use dropout::dropout;
pub use embed::embed;
pub use error::{ConfigError, expect_valid};
pub use linear::apply as linear;
pub use mixer::{
    EitherMixer, EitherState, GatedDeltaRule, GatedDeltaRuleConfig, GatedDeltaState, MixerCall,
    MixerState, TokenMixer,
};
pub use norm::{Norm, NormConfig, normalised};
pub use ops::{
    AttentionBias, AttentionDropout, AttentionMask, AttentionOptions, BlockSize, Captured,
    CausalAlignment, DropoutError, MaskFunction, Number, Pair, PairBlock, Pairs, RelativeBuckets,
    RelativeBucketsError, ScoreForm, ScoreFunction, Shown, StatisticsOptions, VisibleForm,
    alibi_slopes, seed, with_dropout_seed,
};
pub use softcap::softcap;
pub use tied_embedding::{TiedEmbedding, TiedEmbeddingConfig};
pub use trace::Trace;
pub use transformer::{
    BlockConfig, ExpertsConfig, FeedForward, FeedForwardActivation, FeedForwardConfig, LayerCache,
    LayerInput, LayerOutput, LayerPattern, MixtureOfExperts, MixtureOfExpertsConfig,
    MixtureOfExpertsOutput, NormPlacement, SublayerConnection, Transformer, TransformerCache,
    TransformerConfig, TransformerInput, TransformerLayer, TransformerLayerConfig,
    TransformerOutput, TransformerStack, TransformerStackConfig, TransformerStackOutput,
    load_balancing_loss,
};

/// The README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
