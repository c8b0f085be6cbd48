#![doc = include_str!("../../../README.md")]
#![warn(missing_docs)]

mod attention;
mod dropout;
mod error;
pub mod positions;
mod tied_embedding;
mod transformer;

pub use attention::{
    AttentionOutput, CrossAttention, CrossAttentionConfig, CrossAttentionInput, MultiHeadAttention,
    MultiHeadAttentionConfig, MultiHeadAttentionInput, SelfAttention, SelfAttentionConfig,
    SelfAttentionInput,
};
pub use burn_attn_ops as ops;
pub use dropout::dropout;
pub use error::ConfigError;
pub use ops::{
    AttentionBias, AttentionMask, AttentionOptions, CausalAlignment, RelativeBuckets, Window,
    alibi_slopes, seed,
};
pub use tied_embedding::{TiedEmbedding, TiedEmbeddingConfig};
pub use transformer::{
    BlockConfig, CausalTransformer, CausalTransformerConfig, CausalTransformerInput,
    CausalTransformerOutput, FeedForward, FeedForwardActivation, FeedForwardConfig, Norm,
    NormConfig, NormPlacement, Residual, Transformer, TransformerConfig, TransformerDecoder,
    TransformerDecoderConfig, TransformerDecoderInput, TransformerDecoderLayer,
    TransformerDecoderOutput, TransformerEncoder, TransformerEncoderConfig,
    TransformerEncoderInput, TransformerEncoderOutput, TransformerInput, TransformerLayer,
    TransformerOutput,
};
