//! The three attention modules, and what they share.

mod cross_attention;
mod heads;
mod multi_head;
mod self_attention;

pub use cross_attention::{CrossAttention, CrossAttentionConfig, CrossAttentionInput};
pub use heads::AttentionOutput;
pub use multi_head::{MultiHeadAttention, MultiHeadAttentionConfig, MultiHeadAttentionInput};
pub use self_attention::{SelfAttention, SelfAttentionConfig, SelfAttentionInput};
