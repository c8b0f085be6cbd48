//! Tokenizers of published models.

use std::path::Path;

use burn_attn_models::pretrained;
use tokenizers::{EncodeInput, Encoding};

use crate::{
    Error,
    error::{about, tokenizer_failed},
};

/// The tokenizer of a model. It neither cuts texts nor fills them up, whatever its file says.
///
/// A tokenizer may have tokens that the model does not know, such as one for images, as long as no text has them.
#[derive(Debug)]
pub struct Tokenizer {
    /// The tokenizer.
    pub tokenizer: tokenizers::Tokenizer,
    /// Number of tokens in the model's vocabulary.
    pub vocab_size: usize,
    /// Most tokens that the model reads.
    pub max_len: usize,
}

impl Tokenizer {
    /// The tokenizer of a published model.
    ///
    /// # Errors
    /// If there is none.
    pub fn of(source: &Path, vocab_size: usize, max_len: usize) -> Result<Self, Error> {
        let mut tokenizer = pretrained::tokenizer(source)?;
        tokenizer.with_padding(None);
        let untruncated = tokenizer.with_truncation(None);
        untruncated.map_err(tokenizer_failed)?;
        Ok(Self {
            tokenizer,
            vocab_size,
            max_len,
        })
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
        let encoding = self.tokenizer.encode(text, add_special_tokens);
        let encoding = encoding.map_err(tokenizer_failed)?;
        let vocab_size = self.vocab_size;
        let mut tokens = encoding.get_ids().iter().zip(encoding.get_tokens());
        match tokens.find(|(token, _)| **token as usize >= vocab_size) {
            Some((token, name)) => Err(format!(
                "the tokenizer makes the token {token} ({name:?}) of this text, but the model knows {vocab_size} tokens"
            )
            .into()),
            None => Ok(encoding),
        }
    }

    /// The tokens of a text, including the special ones at its ends.
    ///
    /// # Errors
    /// If the text has no tokens, or more than the model reads.
    pub fn encode_text(&self, text: &str) -> Result<Encoding, Error> {
        let bare = self.encode(text, false)?;
        let tokens = self.encode(text, true)?;
        check_len(text, bare.len(), tokens.len(), self.max_len)?;
        Ok(tokens)
    }
}

/// Refuses a text without tokens, and one that has more than `most` tokens with the special ones at its ends.
///
/// # Errors
/// If it is such a text.
pub fn check_len(text: &str, bare: usize, with_special: usize, most: usize) -> Result<(), Error> {
    if bare == 0 {
        return Err(about(text, "this text has no tokens"));
    }
    if with_special > most {
        let problem =
            format!("this text has {with_special} tokens, but this encoder reads at most {most}");
        return Err(about(text, &problem));
    }
    Ok(())
}
