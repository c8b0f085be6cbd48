//! Checks the prompts, and works out how long each row may become.

use super::Autoregressive;

/// How many new tokens each row may get: `max_new_tokens`, or as many as the model has room for.
///
/// # Panics
///
/// When the prompts do not fit the state, a prompt is empty or too long for the model, or a token is outside the vocabulary.
pub(super) fn room<M: Autoregressive>(
    model: &M,
    state: &M::State,
    prompts: &[Vec<u32>],
    stop_tokens: &[u32],
    max_new_tokens: usize,
) -> Vec<usize> {
    let vocab_size = model.vocab_size();
    let outside = |token: &&u32| **token as usize >= vocab_size;
    if let Some(token) = stop_tokens.iter().find(outside) {
        panic!("generate: stop token {token} is outside the vocabulary of {vocab_size} tokens");
    }
    let lengths = model.lengths(state);
    assert!(
        prompts.len() == lengths.len(),
        "generate: {} prompts for a state of {} rows",
        prompts.len(),
        lengths.len()
    );
    let rows = prompts.iter().zip(lengths).enumerate();
    rows.map(|(row, (prompt, read))| {
        assert!(
            !prompt.is_empty(),
            "generate: prompt {row} is empty; it needs at least one token, such as the begin token"
        );
        if let Some(token) = prompt.iter().find(outside) {
            panic!("generate: token {token} of prompt {row} is outside the vocabulary of {vocab_size} tokens");
        }
        let Some(max_len) = model.max_len() else {
            return max_new_tokens;
        };
        let len = read + prompt.len();
        assert!(
            len <= max_len,
            "generate: prompt {row} brings its row to {len} tokens, but the model holds at most {max_len}"
        );
        // The last token is chosen, never read.
        max_new_tokens.min(max_len - len + 1)
    })
    .collect()
}
