//! What a model computes between its attentions.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `skinny_gemm.rs` | a few rows times a weight |
//! | `layer.rs` | a linear layer of many rows, followed by its activation |
//! | `activated.rs`, `activation.rs` | the activation between the linear layers of a feed-forward network; its functions and their derivatives |
//! | `rotation.rs` | rotary positions |

pub(crate) mod activated;
pub(crate) mod activation;
pub(crate) mod layer;
pub(crate) mod rotation;
pub(crate) mod skinny_gemm;
