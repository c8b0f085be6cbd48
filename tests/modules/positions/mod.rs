//! Positions that belong to the heads have the papers' numbers, and their modules behave like Burn's.

mod alibi;
mod direction;
mod encoding;
mod packed;
mod padding;
mod relative;
mod rotary;
mod rotary_mistakes;
mod rotary_scaling;

use burn::tensor::{Device, Tensor};
use burn_attn::{
    AttentionBias, AttentionOptions,
    ops::{attention, attention_weights},
};
use burn_attn_tests::compare::numbers;

/// What `bias` adds to the scores of `len` queries on `len` keys, each row up to a constant: `[heads][query][key]`.
///
/// Read from the logarithms of the weights where nothing else makes them differ.
fn scores(bias: AttentionBias, heads: usize, len: usize, device: &Device) -> Vec<Vec<Vec<f32>>> {
    let zeros = Tensor::<4>::zeros([1, heads, len, 1], device);
    let options = AttentionOptions::default().bias(bias);
    let weights = attention_weights(zeros.clone(), zeros, options);
    let logarithms: Vec<f32> = numbers(&weights).into_iter().map(f32::ln).collect();
    let rows: Vec<Vec<f32>> = logarithms.chunks(len).map(<[f32]>::to_vec).collect();
    rows.chunks(len).map(<[Vec<f32>]>::to_vec).collect()
}

/// A number that depends on every weight of an attention with this bias.
fn loss(bias: AttentionBias, heads: usize, len: usize, device: &Device) -> Tensor<1> {
    let operand = |seed| burn_attn_tests::numbers::tensor([1, heads, len, 3], seed, device);
    let options = AttentionOptions::default().bias(bias);
    let output = attention(operand(1), operand(2), operand(3), options);
    (output * operand(4)).sum()
}
