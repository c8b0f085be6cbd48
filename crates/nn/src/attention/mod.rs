//! The three attention modules, and what they share.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `self_attention.rs`, `cross_attention.rs`, `multi_head.rs` | the modules, each with its configuration and input |
//! | `memory.rs` | what cross-attention looks at |
//! | `heads_config.rs` | what all of them can be told about their heads |
//! | `heads.rs` | what happens between the projections |
//! | `cached.rs` | the same over a cache |
//! | `masks.rs` | the masks that the modules make |
//! | `projections.rs` | which projections have a bias, and projections made of others |
//! | `qk_norm.rs` | normalised queries and keys |
//! | `convert.rs` | each module made of another |

mod cached;
mod convert;
mod cross_attention;
mod heads;
mod heads_config;
mod masks;
mod memory;
mod multi_head;
mod projections;
mod qk_norm;
mod self_attention;

pub use cross_attention::{CrossAttention, CrossAttentionConfig, CrossAttentionInput};
pub use heads::{AttentionOutput, Heads};
pub use heads_config::HeadsConfig;
pub(crate) use heads_config::heads_builders;
pub use memory::{CrossMemory, ProjectedMemory};
pub use multi_head::{MultiHeadAttention, MultiHeadAttentionConfig, MultiHeadAttentionInput};
pub use projections::ProjectionBias;
pub use qk_norm::{L2QkNorm, QkNorm, QkNormConfig, RmsQkNorm};
pub use self_attention::{SelfAttention, SelfAttentionConfig, SelfAttentionInput};
