//! Layers so wide that single tokens go through the product of few rows, which narrow ones leave to Burn.

use burn::tensor::{Int, Tensor, TensorData};
use burn_attn::{
    AttentionMask, BlockConfig, FeedForwardActivation, LayerInput, MultiHeadAttentionInput,
    SelfAttentionConfig, SelfAttentionInput, TransformerStackConfig, positions::PositionEncoding,
};
use burn_attn_models::{
    generate::Autoregressive,
    language_model::{LanguageModel, LanguageModelConfig},
};
use burn_attn_tests::{
    compare::assert_close,
    devices,
    numbers::{filled, tensor, uniform},
};

use super::{in_pieces, one_by_one, small};

const D_MODEL: usize = 64;
const N_HEADS: usize = 4;
const LEN: usize = 23;
const TOLERANCE: f64 = 5e-6;

/// The steps of two sequences: a prompt of more rows than the kernel takes, of as many as it takes, single tokens, a few.
const PIECES: [usize; 6] = [9, 8, 1, 1, 3, 1];

fn blocks() -> Vec<(&'static str, BlockConfig)> {
    let block = || BlockConfig::new().with_dropout(0.0);
    vec![
        ("plain", block().with_bias(true)),
        (
            "gated, grouped, rotary, without biases",
            block()
                .with_bias(false)
                .with_activation(FeedForwardActivation::SwiGlu)
                .with_n_kv_heads(2)
                .with_position(PositionEncoding::rotary()),
        ),
        (
            "values of another width",
            block().with_d_value_head(17).with_sinks(true),
        ),
    ]
}

#[test]
fn a_wide_layer() {
    for (backend, device) in devices::cpu() {
        for (name, config) in [
            ("plain", SelfAttentionConfig::new(D_MODEL, N_HEADS)),
            (
                "grouped",
                SelfAttentionConfig::new(D_MODEL, N_HEADS).with_n_kv_heads(2),
            ),
            (
                "values of another width",
                SelfAttentionConfig::new(D_MODEL, N_HEADS).with_d_value_head(17),
            ),
        ] {
            let config = config.with_causal(true).with_dropout(0.0);
            let module = filled(config.init(&device), 3);
            let x: Tensor<3> = tensor([2, LEN, D_MODEL], 1, &device);
            let whole = module.forward(SelfAttentionInput::new(x.clone()));
            let mut cache = module.cache(2, &small(LEN));
            let cached = in_pieces(&module, &mut cache, &x, &PIECES);
            let what = format!("{name} on {backend}");
            assert_close(&what, &cached.into_data(), &whole.to_data(), TOLERANCE);

            // Its projections are columns of one matrix, seen as matrices of their own.
            let module = module.into_multi_head();
            let input = MultiHeadAttentionInput::self_attention(x.clone());
            let of_views = module.forward(input.mask(AttentionMask::causal()));
            let what = format!("{name}, in views, on {backend}");
            assert_close(&what, &of_views.into_data(), &whole.to_data(), TOLERANCE);
            let mut cache = module.cache(2, &small(LEN));
            let cached = one_by_one(&PIECES, |first, len| {
                let piece = x.clone().narrow(1, first, len);
                let input = MultiHeadAttentionInput::self_attention(piece);
                module.forward_cached(input, &mut cache)
            });
            assert_close(&what, &cached.into_data(), &whole.into_data(), TOLERANCE);
        }
    }
}

#[test]
fn a_wide_stack() {
    for (backend, device) in devices::cpu() {
        for (name, block) in blocks() {
            let config = TransformerStackConfig::causal(D_MODEL, 128, N_HEADS, 2).with_block(block);
            let stack = filled(config.init(&device), 3);
            let x: Tensor<3> = tensor([2, LEN, D_MODEL], 1, &device);
            let whole = stack.forward(LayerInput::new(x.clone()));
            let mut caches = stack.cache(2, &small(LEN));
            let cached = one_by_one(&PIECES, |first, len| {
                stack.forward_cached(x.clone().narrow(1, first, len), &mut caches)
            });
            let what = format!("{name} on {backend}");
            assert_close(&what, &cached.into_data(), &whole.into_data(), TOLERANCE);
        }
    }
}

#[test]
fn a_wide_language_model() {
    const VOCABULARY: usize = 71;
    for (backend, device) in devices::cpu() {
        for tied in [true, false] {
            let block = BlockConfig::new().with_dropout(0.0);
            let config = LanguageModelConfig::new(VOCABULARY)
                .with_d_model(D_MODEL)
                .with_n_heads(N_HEADS)
                .with_d_ff(128)
                .with_max_len(LEN)
                .with_block(block)
                .with_tied(tied);
            let model: LanguageModel = filled(config.init(&device), 3);
            let tokens: Vec<u32> = uniform(5, LEN)
                .iter()
                .map(|number| ((number + 1.0) / 2.0 * VOCABULARY as f32) as u32)
                .collect();
            let whole = tokens.iter().map(|&token| token as i32).collect();
            let whole = TensorData::new(whole, [1, LEN]);
            let whole = model.forward(Tensor::<2, Int>::from_data(whole, &device));
            let mut state = model.start_with(1, &small(LEN));
            let mut end = 0;
            for len in PIECES {
                let logits = model.advance(&mut state, &[&tokens[end..end + len]]);
                end += len;
                let expected = whole.clone().narrow(1, end - 1, 1).reshape([1, VOCABULARY]);
                let what = format!("{end} tokens, tied {tied}, on {backend}");
                assert_close(&what, &logits.into_data(), &expected.into_data(), TOLERANCE);
            }
        }
    }
}
