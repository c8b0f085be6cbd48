//! The kernels of one tile, generic only in the precision: no element types, no threads, no validation.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `real.rs` | vectors of f32 and f64, exp and tanh with their error bounds |
//! | `gemm.rs` | the GEMM and its micro-kernels |
//! | `tile.rs`, `transpose.rs` | how queries and keys are divided into tiles, panels and blocks; conversion between rows and panels |
//! | `visibility.rs` | the mask: which blocks of keys are skipped, and hiding in those that are hidden in part |
//! | `scores.rs`, `softcap.rs`, `bias.rs`, `softmax.rs` | from the dot products to the weights: softcap, biases, mask, dropout, exponential |
//! | `screened.rs` | NaN in keys and values that nobody sees |
//! | `forward.rs`, `decode.rs` | a tile forward; a single query and one split of the keys |
//! | `backward.rs`, `backward_step.rs`, `sums.rs` | a tile backward; one of its panels and a block of keys; sums over queries |
//! | `skinny_gemm.rs`, `linear.rs` | a slice of the depth of a skinny GEMM; a block of rows of a linear layer |
//! | `rotation.rs` | rows with rotary positions |
//! | `activation.rs`, `activation_backward.rs` | the activation of some rows of a feed-forward network, and its gradient |

pub(super) mod activation;
pub(super) mod activation_backward;
pub(super) mod backward;
pub(super) mod backward_step;
pub(super) mod bias;
pub(super) mod decode;
pub(super) mod forward;
pub(super) mod gemm;
pub(super) mod linear;
pub(super) mod real;
pub(super) mod rotation;
pub(super) mod scores;
pub(super) mod screened;
pub(super) mod skinny_gemm;
pub(super) mod softcap;
pub(super) mod softmax;
pub(super) mod sums;
pub(super) mod tile;
mod transpose;
pub(super) mod visibility;
