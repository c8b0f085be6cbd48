//! Tokenizers of published models.

use std::path::Path;

use burn_attn_models::pretrained::{self, PretrainedError};
use tokenizers::Tokenizer;

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

/// What pictures call these tokens.
pub fn labels(tokenizer: &Tokenizer, tokens: &[u32]) -> Vec<String> {
    let token = |&token| {
        let text = tokenizer.id_to_token(token);
        text.unwrap_or_else(|| format!("<{token}>"))
    };
    tokens.iter().map(token).collect()
}
