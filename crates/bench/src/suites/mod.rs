//! What is measured against whom.

use crate::case::Case;
use crate::cli::Suite;

mod blockwise;
mod decode;
mod gpu;
pub mod models;
mod module;
mod op;
mod translation;

/// The cases of a suite, in the order of the table, on a GPU or on a processor.
pub fn cases(suite: Suite, on_gpu: bool) -> Vec<Case> {
    match suite {
        Suite::Op => op::cases(),
        Suite::Module => module::cases(),
        Suite::Decode => decode::cases(),
        Suite::Translation => translation::cases(),
        Suite::Models => models::cases(),
        Suite::Blockwise => blockwise::cases(on_gpu),
        Suite::Gpu => gpu::cases(),
    }
}

#[cfg(test)]
mod tests;
