//! What wgpu alone can get wrong, whose backend fuses operations and, in this build, chooses kernels by trying them.

mod cached;
mod eight_bits;
mod few_parameters;
mod products;
mod token_positions;

use burn::tensor::{Device, Int, Tensor, TensorData};
use burn_attn::{
    BlockConfig, FeedForwardActivation, NormPlacement,
    positions::{AlibiConfig, PositionEncoding, RotaryConfig},
};
use burn_attn_models::language_model::{AbsolutePosition, LanguageModel, LanguageModelConfig};
use burn_attn_tests::numbers::{filled, uniform};

const VOCABULARY: usize = 59;
const LEN: usize = 13;

/// One model in the manner of Llama, one of GPT-2's, one with biases and sinks that learn. Their widths are multiples of the vectors in which Burn's
/// kernels for a single row read.
fn models(device: &Device) -> Vec<(&'static str, LanguageModel)> {
    let block = || {
        BlockConfig::new()
            .with_dropout(0.0)
            .with_norm_placement(NormPlacement::Pre)
    };
    let rotary = PositionEncoding::Rotary(RotaryConfig::new().with_max_len(LEN));
    let alibi = PositionEncoding::Alibi(AlibiConfig::new().with_learnable(true));
    [
        (
            "rotary, gated",
            block()
                .with_position(rotary)
                .with_n_kv_heads(2)
                .with_activation(FeedForwardActivation::SwiGlu),
            AbsolutePosition::None,
        ),
        ("learned", block(), AbsolutePosition::Learned),
        (
            "alibi, sinks",
            block().with_position(alibi).with_sinks(true),
            AbsolutePosition::None,
        ),
    ]
    .map(|(name, block, position)| {
        let config = LanguageModelConfig::new(VOCABULARY)
            .with_d_model(32)
            .with_n_heads(4)
            .with_n_layers(2)
            .with_d_ff(64)
            .with_max_len(LEN)
            .with_block(block)
            .with_absolute_position(position);
        (name, filled(config.init(device), 1))
    })
    .into()
}

/// `rows` texts of [`LEN`] arbitrary tokens.
fn texts(rows: usize) -> Vec<Vec<u32>> {
    let numbers = uniform(5, rows * LEN);
    let token = |number: &f32| ((number + 1.0) / 2.0 * VOCABULARY as f32) as u32;
    let rows = numbers.chunks(LEN);
    rows.map(|row| row.iter().map(token).collect()).collect()
}

/// Texts as a tensor.
fn tokens(texts: &[Vec<u32>], device: &Device) -> Tensor<2, Int> {
    let tokens: Vec<i32> = texts.iter().flatten().map(|&token| token as i32).collect();
    Tensor::from_data(TensorData::new(tokens, [texts.len(), LEN]), device)
}
