//! Errors of conversations.

use std::path::PathBuf;

use thiserror::Error;

use crate::{generate::GenerateError, pretrained::PretrainedError};

/// Why a model cannot answer, in one sentence with the offending text or file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ChatError {
    /// A chat template cannot be read or compiled, or it refuses the messages.
    #[error("the chat template of {path}: {reason}", path = path.display())]
    Template {
        /// The file that has the template.
        path: PathBuf,
        /// What is wrong with the template or the messages.
        reason: String,
    },
    /// There is a system message for a model without a chat template.
    #[error("a system message needs a chat template, and this model has none")]
    NoTemplate,
    /// A text has no tokens, or too many, or the tokenizer fails on it.
    #[error("{}: {reason}", shortened(text))]
    Text {
        /// The text.
        text: String,
        /// Why the model cannot read the text.
        reason: String,
    },
    /// The tokenizer failed on the text of a template, or on what the model wrote.
    #[error("the tokenizer failed: {0}")]
    Tokenizer(#[from] tokenizers::Error),
    /// Nothing can be generated.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// The files do not hold such a model.
    #[error(transparent)]
    Pretrained(#[from] PretrainedError),
}

/// The beginning of a text, in quotation marks.
fn shortened(text: &str) -> String {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}
