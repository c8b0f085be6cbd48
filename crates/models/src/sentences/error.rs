//! Why a text cannot become a vector.

use thiserror::Error;

/// Why a text cannot become a vector.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The tokenizer failed.
    #[error("the tokenizer failed: {0}")]
    Tokenizer(#[from] tokenizers::Error),
    /// Neither the text nor the tokenizer gives a token.
    #[error("text {text} has no tokens")]
    Empty {
        /// The place of the text among those given.
        text: usize,
    },
    /// The tokenizer has a token that the model does not know.
    #[error("the tokenizer makes the token {token}, but the model knows {vocab_size}")]
    Token {
        /// The token.
        token: u32,
        /// Number of tokens in the vocabulary.
        vocab_size: usize,
    },
    /// One of several texts has no [tokens](super::SentenceEncoder::tokens), for this reason.
    #[error("text {text}: {reason}")]
    Text {
        /// The place of the text among those given.
        text: usize,
        /// The reason.
        reason: Box<EncodeError>,
    },
}
