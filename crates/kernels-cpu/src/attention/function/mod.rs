//! Functions that a caller defines for a pair of query and key: of its score, and of its visibility.
//!
//! A caller writes a function of one pair. The function is compiled with a loop around it, so that the kernels make one call per panel and the
//! compiler uses vectors.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `number.rs` | [`Number`]: what a function computes with |
//! | `lines.rs` | [`Pair`], and the lines of scores that a function runs along |
//! | `score.rs` | [`ScoreForm`], and the loops around it |
//! | `visible.rs` | [`VisibleForm`], and the loop around it |

pub(crate) mod lines;
mod number;
pub(crate) mod score;
pub(crate) mod visible;

pub use lines::{Looped, Pair};
pub use number::Number;
pub use score::{Captured, ScoreForm, ScoreForms, ScoreFunction, ScoreLoops};
pub use visible::{PairBlock, Shown, VisibleForm, VisibleForms, VisibleFunction, VisibleLoops};
