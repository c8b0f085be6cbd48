//! What a model computes between attention layers: linear layers, activations and rotary positions.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `skinny_gemm.rs`, `split_k.rs` | a few rows times a weight; a slice of the depth |
//! | `layer.rs` | a linear layer of many rows, followed by its activation |
//! | `activated.rs`, `activation.rs` | the activation between the linear layers of a feed-forward network; its functions and their derivatives |
//! | `rotation.rs`, `rotary_rows.rs` | rotary positions; those of some rows |

pub(crate) mod activated;
pub(crate) mod activation;
pub(crate) mod layer;
pub(crate) mod rotary_rows;
pub(crate) mod rotation;
pub(crate) mod skinny_gemm;
pub(crate) mod split_k;
