//! Tokens are checked where that costs nothing.

use burn::tensor::{Int, Tensor};
use burn_attn::ops::in_host_memory;

/// Checks tokens on a CPU backend; elsewhere it would have to wait for the device in every forward pass.
///
/// # Panics
///
/// In the name of `model`, with the first token that is outside the vocabulary.
pub(crate) fn check(model: &str, tokens: &Tensor<2, Int>, vocab_size: usize) {
    if !in_host_memory(&tokens.device()) {
        return;
    }
    let vocabulary = 0..vocab_size as i64;
    let tokens = tokens.to_data();
    if let Some(token) = tokens
        .iter::<i64>()
        .find(|token| !vocabulary.contains(token))
    {
        panic!("{model}: token {token} is outside the vocabulary of {vocab_size} tokens");
    }
}
