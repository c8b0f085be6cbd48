//! The attention modules, and their common parts.

mod cached;
mod context;
mod convert;
mod cross_attention;
mod heads;
mod heads_config;
mod latent_attention;
mod masks;
mod memory;
mod multi_head;
mod place;
mod projections;
mod qk_norm;
mod self_attention;
mod shared_prefix;
mod traced;

pub(crate) use cached::SharedKeyValue;
pub use context::AttentionContext;
pub(crate) use context::{context_builders, refuse};
pub use cross_attention::{CrossAttention, CrossAttentionConfig, CrossAttentionInput};
pub use heads::{AttentionOutput, Heads};
pub use heads_config::HeadsConfig;
pub(crate) use heads_config::heads_builders;
pub use latent_attention::{LatentAttention, LatentAttentionConfig};
pub use masks::padding;
pub use memory::{CrossMemory, ProjectedMemory};
pub use multi_head::{MultiHeadAttention, MultiHeadAttentionConfig, MultiHeadAttentionInput};
pub use projections::ProjectionBias;
pub use qk_norm::{QkNorm, QkNormConfig};
pub use self_attention::{SelfAttention, SelfAttentionConfig, SelfAttentionInput};
