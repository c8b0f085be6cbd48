//! Conversations with a published model, by the chat template that it was trained with.
//!
//! | file | what it says |
//! | --- | --- |
//! | `chat_template.jinja`, or `chat_template` in `tokenizer_config.json` | how messages become one text |
//! | `generation_config.json`, `config.json`, `tokenizer_config.json`, `special_tokens_map.json` | which tokens end an answer |
//!
//! [`ChatModel`] reads all of them, and nothing else of `generation_config.json`. [`Conversation`] lets the model answer. Its state goes on
//! from turn to turn, so that a turn reads little more than what is new.

mod channels;
mod conversation;
mod error;
mod model;
mod template;

pub use conversation::{Conversation, Turn};
pub use error::ChatError;
pub use model::ChatModel;
pub use template::{Message, Template};
