//! Tokenizers of published models.

use std::{ops::Deref, path::Path};

use burn_attn_models::pretrained;
pub use burn_attn_models::text::labels;
use tokenizers::{EncodeInput, Encoding};

use crate::Error;

/// The tokenizer of a model. It neither cuts texts nor fills them up, whatever its file says.
///
/// A tokenizer may have tokens that the model does not know, such as one for images, as long as no text has them.
#[derive(Debug)]
pub struct Tokenizer {
    tokenizer: tokenizers::Tokenizer,
    vocab_size: usize,
}

impl Tokenizer {
    /// A tokenizer for a model that knows so many tokens.
    pub fn new(tokenizer: tokenizers::Tokenizer, vocab_size: usize) -> Self {
        Self {
            tokenizer,
            vocab_size,
        }
    }

    /// The tokens of a text, or of two.
    ///
    /// # Errors
    /// If the tokenizer fails, or the text has a token that the model does not know.
    pub fn encode<'s>(
        &self,
        text: impl Into<EncodeInput<'s>>,
        add_special_tokens: bool,
    ) -> Result<Encoding, Error> {
        let encoding = self.tokenizer.encode(text, add_special_tokens)?;
        let unknown = |&token: &usize| encoding.get_ids()[token] as usize >= self.vocab_size;
        match (0..encoding.len()).find(unknown) {
            Some(place) => Err(Error::UnknownToken {
                token: encoding.get_ids()[place],
                name: encoding.get_tokens()[place].clone(),
                vocab_size: self.vocab_size,
            }),
            None => Ok(encoding),
        }
    }
}

impl Deref for Tokenizer {
    type Target = tokenizers::Tokenizer;

    fn deref(&self) -> &Self::Target {
        &self.tokenizer
    }
}

/// The tokenizer of a model that knows so many tokens.
///
/// # Errors
/// If there is none.
pub fn tokenizer(source: &Path, vocab_size: usize) -> Result<Tokenizer, Error> {
    let mut tokenizer = pretrained::tokenizer(source)?;
    tokenizer.with_padding(None);
    tokenizer.with_truncation(None)?;
    Ok(Tokenizer::new(tokenizer, vocab_size))
}

/// The tokens of a text, including the special ones at its ends.
///
/// # Errors
/// If it has none, or more than `most`.
pub fn encoded(tokenizer: &Tokenizer, text: &str, most: usize) -> Result<Encoding, Error> {
    if tokenizer.encode(text, false)?.is_empty() {
        return Err(Error::text(text, "this text has no tokens"));
    }
    let tokens = tokenizer.encode(text, true)?;
    if tokens.len() > most {
        let len = tokens.len();
        let problem = format!("this text has {len} tokens, but this encoder reads at most {most}");
        return Err(Error::text(text, problem));
    }
    Ok(tokens)
}
