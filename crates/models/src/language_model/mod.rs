//! The decoder-only language model of GPT and Llama.
//!
//! | item | what it is |
//! | --- | --- |
//! | [`LanguageModelConfig`] | sizes, blocks, positions, head |
//! | [`LanguageModel`] | from tokens to the logits of the tokens that follow |
//! | [`LanguageModelState`] | what it keeps while it [generates](crate::generate) |

mod config;
mod decoding;
mod model;

pub(crate) use config::check_rotary;
pub use config::{AbsolutePosition, LanguageModelConfig};
pub use decoding::LanguageModelState;
pub use model::LanguageModel;
