//! Functions that users write: of scores, and of what is visible.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `captured.rs` | [`Captured`]: a tensor that a function reads |
//! | `pairs.rs` | [`Pairs`]: the queries and keys of a block, as a function sees them |
//! | `score.rs` | [`ScoreFunction`], and how its tensors travel in one operand |
//! | `mask.rs` | [`MaskFunction`] |
//! | `table.rs` | what a mask function shows of blocks |
//! | `as_mask.rs` | a mask function as a part of a mask, and its table |

mod as_mask;
pub(crate) mod captured;
mod mask;
mod pairs;
mod score;
mod table;

pub use captured::Captured;
pub use mask::MaskFunction;
pub(crate) use pairs::Block;
pub use pairs::Pairs;
pub use score::ScoreFunction;
pub(crate) use score::Slot;
pub use table::BlockTable;
