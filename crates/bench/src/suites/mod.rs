//! What is measured against whom.

use crate::case::Case;
use crate::cli::Suite;

mod blockwise;
mod decode;
pub mod models;
mod module;
mod op;
mod translation;

/// As in the tables.
pub fn name(suite: Suite) -> &'static str {
    match suite {
        Suite::Op => "op",
        Suite::Module => "module",
        Suite::Decode => "decode",
        Suite::Translation => "translation",
        Suite::Models => "models",
        Suite::Blockwise => "blockwise",
    }
}

/// The cases of a suite, in the order of the table.
pub fn cases(suite: Suite) -> Vec<Case> {
    match suite {
        Suite::Op => op::cases(),
        Suite::Module => module::cases(),
        Suite::Decode => decode::cases(),
        Suite::Translation => translation::cases(),
        Suite::Models => models::cases(),
        Suite::Blockwise => blockwise::cases(),
    }
}
