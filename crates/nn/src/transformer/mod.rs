//! The stacks of transformers, and the blocks that their layers are made of.

mod activation;
mod block;
mod causal;
mod decoder;
mod decoder_cache;
mod encoder;
mod encoder_decoder;
mod feed_forward;
mod layer;
mod mixture_of_experts;
mod norm;
mod residual;

pub use activation::FeedForwardActivation;
pub use block::BlockConfig;
pub use causal::{
    CausalTransformer, CausalTransformerConfig, CausalTransformerInput, CausalTransformerOutput,
};
pub use decoder::{
    TransformerDecoder, TransformerDecoderConfig, TransformerDecoderInput, TransformerDecoderLayer,
    TransformerDecoderOutput,
};
pub use decoder_cache::TransformerDecoderCache;
pub use encoder::{
    TransformerEncoder, TransformerEncoderConfig, TransformerEncoderInput, TransformerEncoderOutput,
};
pub use encoder_decoder::{Transformer, TransformerConfig, TransformerInput, TransformerOutput};
pub use feed_forward::{FeedForward, FeedForwardConfig};
pub use layer::TransformerLayer;
pub use mixture_of_experts::{
    MixtureOfExperts, MixtureOfExpertsConfig, MixtureOfExpertsOutput, load_balancing_loss,
};
pub use norm::{Norm, NormConfig};
pub use residual::{NormPlacement, Residual};
