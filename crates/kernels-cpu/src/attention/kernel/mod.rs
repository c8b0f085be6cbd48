//! The kernels of one tile, generic only in the precision.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `tile.rs`, `transpose.rs` | how queries and keys are divided into tiles, panels and blocks; conversion between rows and panels |
//! | `seen.rs` | the keys that a panel sees, and their scores |
//! | `visibility.rs` | the mask: which blocks of keys are skipped, and hiding in those that are hidden in part |
//! | `scores.rs`, `softcap.rs`, `bias.rs`, `softmax.rs` | from the dot products to the weights: softcap, biases, mask, dropout, exponential |
//! | `function.rs` | functions of a caller's own on the scores of a panel |
//! | `operands.rs` | what a tile reads: its head, its options, and the blocks of keys that it sees |
//! | `screened.rs` | NaN in keys and values that nobody sees |
//! | `forward.rs`, `decode.rs` | a tile forward; a single query and one split of the keys |
//! | `backward.rs`, `weights.rs`, `sums.rs` | a tile backward; weights and gradients of scores; sums over queries |

pub(crate) mod backward;
pub(crate) mod bias;
pub(crate) mod decode;
pub(crate) mod forward;
pub(crate) mod function;
pub(crate) mod operands;
pub(crate) mod scores;
pub(crate) mod screened;
pub(crate) mod seen;
pub(crate) mod softcap;
pub(crate) mod softmax;
pub(crate) mod sums;
pub(crate) mod tile;
mod transpose;
pub(crate) mod visibility;
mod weights;
