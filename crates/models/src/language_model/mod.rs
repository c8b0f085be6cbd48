//! The decoder-only language model of GPT and Llama.
//!
//! | file | what it is |
//! | --- | --- |
//! | `config` | [`LanguageModelConfig`]: sizes, blocks, positions, head |
//! | `model` | [`LanguageModel`]: tokens in, logits of the tokens that follow out |
//! | `decoding` | [`LanguageModelState`]: what it keeps while it [generates](crate::generate) |

mod config;
mod decoding;
mod model;

pub(crate) use config::check_rotary;
pub use config::{AbsolutePosition, LanguageModelConfig};
pub use decoding::LanguageModelState;
pub use model::LanguageModel;
