//! The three attention modules, and their common parts.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `self_attention.rs`, `cross_attention.rs`, `multi_head.rs` | the modules, each with its configuration and input |
//! | `context.rs` | masks, biases, lengths and positions of an input |
//! | `memory.rs` | the memory of cross-attention |
//! | `heads_config.rs` | the configuration of the heads, the same in all modules |
//! | `heads.rs` | the computation between the projections |
//! | `cached.rs` | the same with a cache |
//! | `masks.rs` | the masks that the modules make |
//! | `place.rs` | where queries stand among the keys of another sequence |
//! | `projections.rs` | which projections have a bias; fusing and separating projections |
//! | `qk_norm.rs` | normalised queries and keys |
//! | `convert.rs` | conversions between the modules |

mod cached;
mod context;
mod convert;
mod cross_attention;
mod heads;
mod heads_config;
mod masks;
mod memory;
mod multi_head;
mod place;
mod projections;
mod qk_norm;
mod self_attention;

pub use context::AttentionContext;
pub(crate) use context::context_builders;
pub use cross_attention::{CrossAttention, CrossAttentionConfig, CrossAttentionInput};
pub(crate) use heads::Attended;
pub use heads::{AttentionOutput, Heads};
pub use heads_config::HeadsConfig;
pub(crate) use heads_config::heads_builders;
pub use memory::{CrossMemory, ProjectedMemory};
pub use multi_head::{MultiHeadAttention, MultiHeadAttentionConfig, MultiHeadAttentionInput};
pub use projections::ProjectionBias;
pub use qk_norm::{QkNorm, QkNormConfig};
pub use self_attention::{SelfAttention, SelfAttentionConfig, SelfAttentionInput};
