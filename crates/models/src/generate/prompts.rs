//! Checks the prompts, and works out how long each row may become.

use super::{Autoregressive, GenerateError};

/// How many new tokens each row may get: `max_new_tokens`, or as many as the model holds behind the prompt. Fails if the model has no logits, the
/// prompts do not fit the state, a prompt is empty or too long for the model, or a token is outside the vocabulary.
pub(super) fn budgets<M: Autoregressive>(
    model: &M,
    state: &M::State,
    prompts: &[Vec<u32>],
    stop_tokens: &[u32],
    max_new_tokens: usize,
) -> Result<Vec<usize>, GenerateError> {
    if !model.has_logits() {
        return Err(GenerateError::NoLogits);
    }
    let vocab_size = model.vocab_size();
    let outside = |token: &&u32| **token as usize >= vocab_size;
    if let Some(&token) = stop_tokens.iter().find(outside) {
        return Err(GenerateError::StopToken { token, vocab_size });
    }
    let lengths = model.lengths(state);
    if prompts.len() != lengths.len() {
        return Err(GenerateError::Rows {
            prompts: prompts.len(),
            rows: lengths.len(),
        });
    }
    let rows = prompts.iter().zip(lengths).enumerate();
    rows.map(|(row, (prompt, read))| {
        if prompt.is_empty() {
            return Err(GenerateError::EmptyPrompt { row });
        }
        if let Some(&token) = prompt.iter().find(outside) {
            return Err(GenerateError::Token {
                token,
                row,
                vocab_size,
            });
        }
        let Some(max_len) = model.max_len() else {
            return Ok(max_new_tokens);
        };
        let len = read + prompt.len();
        if len > max_len {
            return Err(GenerateError::TooLong { row, len, max_len });
        }
        // The last token is chosen, never read.
        Ok(max_new_tokens.min(max_len - len + 1))
    })
    .collect()
}
