//! Tokenizers of published models.

use std::path::Path;

use burn_attn_models::pretrained::{self, PretrainedError};
use tokenizers::{Encoding, Tokenizer};

use crate::Error;

/// The tokenizer of a model that knows so many tokens. It neither cuts texts nor fills them up, whatever its file says.
///
/// # Errors
/// If there is none, or if it has a token that the model does not know.
pub fn tokenizer(source: &Path, vocab_size: usize) -> Result<Tokenizer, Error> {
    let mut tokenizer = pretrained::tokenizer(source)?;
    let largest = tokenizer.get_vocab(true).into_values().max();
    if let Some(token) = largest.filter(|&token| token as usize >= vocab_size) {
        return Err(PretrainedError::Tokenizer {
            path: source.into(),
            reason: format!("it has a token {token}, but the model knows {vocab_size}"),
        }
        .into());
    }
    tokenizer.with_padding(None);
    tokenizer.with_truncation(None)?;
    Ok(tokenizer)
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

/// What pictures call these tokens.
pub fn labels(tokenizer: &Tokenizer, tokens: &[u32]) -> Vec<String> {
    let token = |&token| {
        let text = tokenizer.id_to_token(token);
        text.unwrap_or_else(|| format!("<{token}>"))
    };
    tokens.iter().map(token).collect()
}
