//! The kernels of one tile, generic only in the precision.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `tile.rs`, `transpose.rs` | how queries and keys are divided into tiles, panels and blocks; conversion between rows and panels |
//! | `seen.rs` | the keys that a panel sees, and their scores |
//! | `visibility.rs` | the mask: which blocks of keys are skipped, and which keys of the other blocks are hidden |
//! | `scores.rs`, `softcap.rs`, `bias.rs`, `softmax.rs` | from the dot products to the weights: softcap, biases, mask, dropout, exponential |
//! | `function.rs` | the caller's score and visible functions on the scores of a panel |
//! | `operands.rs` | what a tile reads: its head, its options, and the blocks of keys that it sees |
//! | `screened.rs` | zeros in place of hidden NaN and infinity in keys and values |
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
