//! Attention, forward and backward.
//!
//! The drivers check the inputs and divide the work among threads. The kernels, in `kernel/`, compute one tile: they have no element
//! types, no threads and no validation.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `inputs.rs` | the inputs of a call |
//! | `forward.rs` | output and logsumexp, tile by tile, with an online softmax |
//! | `decode.rs` | output and logsumexp of a single query, with the keys divided among threads |
//! | `function/` | score functions and visible functions of the caller |
//! | `backward/` | all gradients, from the saved output and logsumexp |

pub(crate) mod backward;
mod decode;
pub(crate) mod forward;
pub(crate) mod function;
pub(crate) mod inputs;
pub(crate) mod kernel;
