//! Transformers: the layer, the stack, and encoder and decoder together.

mod activation;
mod block;
mod cache;
mod choice;
mod decoding;
mod encoder_decoder;
mod experts_config;
mod feed_forward;
mod input;
mod layer;
mod load_balancing;
mod mixture_of_experts;
mod pattern;
mod residual;
mod run;
mod shared_key_value;
mod stack;

pub use activation::FeedForwardActivation;
pub use block::BlockConfig;
pub use cache::{LayerCache, TransformerCache};
pub use encoder_decoder::{Transformer, TransformerConfig, TransformerInput, TransformerOutput};
pub use experts_config::ExpertsConfig;
pub use feed_forward::{FeedForward, FeedForwardConfig};
pub use input::LayerInput;
pub use layer::{LayerOutput, TransformerLayer, TransformerLayerConfig};
pub use load_balancing::load_balancing_loss;
pub use mixture_of_experts::{MixtureOfExperts, MixtureOfExpertsConfig, MixtureOfExpertsOutput};
pub use pattern::LayerPattern;
pub use residual::{NormPlacement, SublayerConnection};
pub use stack::{TransformerStack, TransformerStackConfig, TransformerStackOutput};
