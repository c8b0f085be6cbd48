//! Whole models: embedding, layers, head, and a step of generation.

use burn::tensor::{Int, Tensor};
use burn_attn_models::{
    generate::Autoregressive,
    language_model::{AbsolutePosition, LanguageModelConfig},
    seq2seq::Seq2SeqConfig,
};
use burn_attn_tests::numbers::filled;

use super::{D_FF, D_MODEL, HEADS, check, devices, packed, schemes};

const VOCABULARY: usize = 21;

fn tokens(device: &burn::tensor::Device) -> Tensor<2, Int> {
    Tensor::from_data([[5, 20, 0, 7, 3], [1, 1, 2, 13, 8]], device)
}

#[test]
fn a_language_model_in_8_bits() {
    for (backend, device) in devices() {
        for tied in [true, false] {
            for position in [AbsolutePosition::Sinusoidal, AbsolutePosition::Learned] {
                let config = LanguageModelConfig::new(VOCABULARY)
                    .with_d_model(D_MODEL)
                    .with_n_heads(HEADS)
                    .with_d_ff(D_FF)
                    .with_max_len(11)
                    .with_tied(tied)
                    .with_absolute_position(position);
                let block = config.block.clone().with_dropout(0.0);
                let model = filled(config.with_block(block).init(&device), 1);
                let what = format!("{backend}, tied {tied}, {position:?}");
                check(&what, &model, |model| model.forward(tokens(&device)));
                check(&what, &model, |model| {
                    let mut state = model.start(2);
                    model.advance(&mut state, &[&[5, 20, 0], &[1]]);
                    model.advance(&mut state, &[&[7], &[13]])
                });
            }
        }
    }
}

#[test]
fn the_translation_model_in_8_bits() {
    for (backend, device) in devices() {
        let config = Seq2SeqConfig::new(VOCABULARY)
            .with_d_model(D_MODEL)
            .with_n_heads(HEADS)
            .with_d_ff(D_FF)
            .with_dropout(0.0)
            .with_max_len(11);
        let model = filled(config.init(&device), 1);
        let lengths = &[5, 3];
        check(&backend, &model, |model| {
            model.forward(tokens(&device), lengths, tokens(&device))
        });
        check(&backend, &model, |model| {
            let mut state = model.start(tokens(&device), lengths);
            model.advance(&mut state, &[&[5, 20, 0], &[1]]);
            model.advance(&mut state, &[&[7], &[13]])
        });
    }
}

#[test]
fn empty_input_gives_empty_output() {
    for (_, device) in devices() {
        for (_, scheme) in schemes() {
            let nothing = || Tensor::<2, Int>::zeros([0, 3], &device);
            for tied in [true, false] {
                let config = LanguageModelConfig::new(VOCABULARY)
                    .with_d_model(D_MODEL)
                    .with_n_heads(HEADS)
                    .with_d_ff(D_FF)
                    .with_tied(tied);
                let model = packed(filled(config.init(&device), 1), scheme);
                assert_eq!(model.forward(nothing()).dims(), [0, 3, VOCABULARY]);
            }
            let config = Seq2SeqConfig::new(VOCABULARY)
                .with_d_model(D_MODEL)
                .with_n_heads(HEADS)
                .with_d_ff(D_FF);
            let model = packed(filled(config.init(&device), 1), scheme);
            let logits = model.forward(nothing(), &[], nothing());
            assert_eq!(logits.dims(), [0, 3, VOCABULARY]);
        }
    }
}
