//! Transformers: the layer, the stack, and encoder and decoder together.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `layer.rs` | one layer, which can be built and run alone |
//! | `block.rs` | how a layer is built, apart from its sizes |
//! | `input.rs` | the input of layers and stacks |
//! | `mixture_of_experts.rs` | a feed-forward network made of experts |
//! | `load_balancing.rs` | the load-balancing loss of experts |
//! | `residual.rs`, `norm.rs`, `feed_forward.rs`, `activation.rs` | the parts of a layer other than attention |
//! | `stack.rs`, `pattern.rs` | stacks of layers, and how their layers may differ |
//! | `shared_position.rs` | position encodings shared by the layers of a stack |
//! | `cache.rs`, `decoding.rs` | caches of layers and stacks, and how stacks decode |
//! | `encoder_decoder.rs` | encoder and decoder together |

mod activation;
mod block;
mod cache;
mod decoding;
mod encoder_decoder;
mod feed_forward;
mod input;
mod layer;
mod load_balancing;
mod mixture_of_experts;
mod norm;
mod pattern;
mod residual;
mod shared_position;
mod stack;

pub use activation::FeedForwardActivation;
pub use block::BlockConfig;
pub use cache::{LayerCache, TransformerCache};
pub use encoder_decoder::{Transformer, TransformerConfig, TransformerInput, TransformerOutput};
pub use feed_forward::{FeedForward, FeedForwardConfig};
pub use input::LayerInput;
pub use layer::{LayerOutput, TransformerLayer, TransformerLayerConfig};
pub use load_balancing::load_balancing_loss;
pub use mixture_of_experts::{
    ExpertsConfig, MixtureOfExperts, MixtureOfExpertsConfig, MixtureOfExpertsOutput,
};
pub use norm::{Norm, NormConfig};
pub use pattern::LayerPattern;
pub use residual::{NormPlacement, SublayerConnection};
pub use stack::{TransformerStack, TransformerStackConfig, TransformerStackOutput};
