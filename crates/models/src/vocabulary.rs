//! From tokens to the states of a model, and from states to the logits of tokens.

use burn::{
    module::Param,
    nn::Linear,
    tensor::{Int, Tensor, assert_shape},
};
use burn_attn::{
    TiedEmbedding,
    ops::{self, backend::in_host_memory},
    positions::{Learned, Positions, Sinusoidal},
};

/// Checks tokens on a CPU backend. On others the check would have to wait for the device in every forward pass.
///
/// # Panics
///
/// In the name of `model`, with the first token that is outside the vocabulary.
pub(crate) fn check(model: &str, tokens: &Tensor<2, Int>, vocab_size: usize) {
    if let Some(token) = outside(tokens, vocab_size) {
        panic!("{model}: token {token} is outside the vocabulary of {vocab_size} tokens");
    }
}

/// The first number that is no row of a table of this size, on a CPU backend.
pub(crate) fn outside(numbers: &Tensor<2, Int>, rows: usize) -> Option<i64> {
    let rows = 0..rows as i64;
    let is_near = in_host_memory(&numbers.device());
    let numbers = is_near.then(|| numbers.to_data())?;
    numbers.iter::<i64>().find(|number| !rows.contains(number))
}

/// Embedded tokens with their positions added, if there is a table of positions.
///
/// # Panics
///
/// In the name of `model`, when a position is past the table; on a CPU backend, when a token is outside the vocabulary.
pub(crate) fn embed(
    model: &str,
    embedding: &TiedEmbedding,
    (sinusoidal, learned): (Option<&Sinusoidal>, Option<&Learned>),
    tokens: Tensor<2, Int>,
    positions: impl Into<Positions>,
) -> Tensor<3> {
    let [vocab_size, _] = embedding.weight.dims();
    check(model, &tokens, vocab_size);
    let x = embedding.forward(tokens);
    match (sinusoidal, learned) {
        (Some(sinusoidal), _) => sinusoidal.forward_from(x, positions),
        (_, Some(learned)) => learned.forward_from(x, positions),
        (None, None) => x,
    }
}

/// Logits of states `[.., d_model]`: by the head, or by the embedding if there is none.
///
/// # Panics
///
/// When the last axis is not `d_model`.
pub(crate) fn logits<const D: usize>(
    embedding: &TiedEmbedding,
    head: Option<&Linear>,
    states: Tensor<D>,
) -> Tensor<D> {
    let Some(head) = head else {
        return embedding.logits(states);
    };
    let [d_model, vocab_size] = head.weight.dims();
    assert_shape!(states, [.., d_model]);
    let mut shape = states.dims();
    shape[D - 1] = vocab_size;
    let count = states.shape().num_elements() / d_model;
    // In Burn's reshape a 0 means the dimension that was there.
    if count == 0 {
        return Tensor::zeros(shape, (&states.device(), states.dtype()));
    }
    let rows: Tensor<2> = states.reshape([count, d_model]);
    // Fast for the single rows of decoding too.
    ops::linear(rows, head.weight.val(), head.bias.as_ref().map(Param::val)).reshape(shape)
}
