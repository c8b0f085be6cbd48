#![doc = include_str!("generate.md")]

mod autoregressive;
mod beam;
mod error;
mod logits;
mod options;
mod prompts;
mod row;
mod sampling;
mod speculative;
mod stream;

pub use autoregressive::Autoregressive;
pub use beam::{Hypothesis, beam_search};
pub use error::GenerateError;
pub use options::{BeamOptions, GenerateOptions};
pub use row::{FinishReason, GeneratedToken};
pub use sampling::Sampling;
pub use speculative::{Speculation, Speculative, speculate};
pub use stream::{Generation, Stream, Unfinished, generate, stream};
