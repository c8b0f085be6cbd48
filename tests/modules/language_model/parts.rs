//! What stands before and behind the layers.

use burn::tensor::{Int, Tensor};
use burn_attn::{LayerInput, positions::PositionEncoding};
use burn_attn_models::language_model::{AbsolutePosition, LanguageModel, LanguageModelConfig};
use burn_attn_tests::{
    compare::{assert_close, assert_same},
    devices,
    numbers::filled,
};

use super::{D_MODEL, HEADS, MAX_LEN, VOCABULARY, batch, cases, texts};

fn config() -> LanguageModelConfig {
    LanguageModelConfig::new(VOCABULARY)
        .with_d_model(D_MODEL)
        .with_n_heads(HEADS)
        .with_d_ff(29)
        .with_max_len(MAX_LEN)
}

#[test]
fn logits_are_written_out() {
    for (name, device) in devices::cpu() {
        let tokens = batch(&texts(2), &device);
        for tied in [true, false] {
            for scaled in [true, false] {
                let config = config()
                    .with_tied(tied)
                    .with_scaled_embedding(scaled)
                    .with_absolute_position(AbsolutePosition::Learned);
                let model = filled(config.init(&device), 1);
                let table = model.embedding.weight.val();
                let rows: Tensor<1, Int> = tokens.clone().flatten(0, 1);
                let embedded = table.clone().select(0, rows);
                let factor = if scaled { (D_MODEL as f64).sqrt() } else { 1.0 };
                let embedded = embedded.reshape([2, MAX_LEN, D_MODEL]) * factor;
                let positions = model.learned.as_ref().expect("a table").table.val();
                let x = embedded + positions.unsqueeze();
                let states = model.transformer.forward(LayerInput::new(x));
                let states = states.reshape([2 * MAX_LEN, D_MODEL]);
                let projection = match &model.head {
                    Some(head) => head.weight.val(),
                    None => table.transpose(),
                };
                assert_eq!(model.head.is_none(), tied);
                let expected = states.matmul(projection).reshape([2, MAX_LEN, VOCABULARY]);
                let logits = model.forward(tokens.clone());
                assert_close(name, &logits.to_data(), &expected.to_data(), 1e-5);
                // And with its own hands.
                let input = LayerInput::new(model.embed(tokens.clone(), 0));
                assert_same(&model.logits(model.transformer.forward(input)), &logits);
            }
        }
    }
}

#[test]
fn weights_are_of_every_layer_and_head_and_causal() {
    for (_, device) in devices::cpu() {
        let model = filled(config().with_n_layers(3).init(&device), 1);
        let weights = model.attention(batch(&texts(2), &device));
        assert_eq!(weights.len(), 3);
        for weights in weights {
            assert_eq!(weights.dims(), [2, HEADS, MAX_LEN, MAX_LEN]);
            let sums = weights.clone().sum_dim(3);
            let (actual, expected) = (sums.clone().to_data(), sums.ones_like().to_data());
            assert_close("sums", &actual, &expected, 1e-5);
            let future = weights.triu(1);
            assert_same(&future, &future.zeros_like());
        }
    }
}

#[test]
fn empty_input_gives_empty_output() {
    for (_, device) in devices::cpu() {
        for tied in [true, false] {
            let model = filled(config().with_tied(tied).init(&device), 1);
            for [batch, len] in [[0, 3], [2, 0]] {
                let logits = model.forward(Tensor::zeros([batch, len], &device));
                assert_eq!(logits.dims(), [batch, len, VOCABULARY]);
            }
        }
    }
}

#[test]
fn padding_behind_a_text_changes_nothing_before_it() {
    for (name, device) in devices::cpu() {
        for case in cases() {
            let model: LanguageModel = super::model(&case.config, &device);
            let text = texts(1).swap_remove(0);
            let short = model.forward(batch(&[text[..8].to_vec()], &device));
            let long = model.forward(batch(&[text], &device)).narrow(1, 0, 8);
            let what = format!("{name}, {}", case.name);
            // The last query of ALiBi and T5 stands on the last key: the same distances, computed anew.
            assert_close(&what, &long.into_data(), &short.into_data(), 1e-5);
        }
    }
}

#[test]
fn a_model_without_positions_has_no_parameters_for_them() {
    let device = devices::any();
    let count = |config: LanguageModelConfig| {
        use burn::module::Module;
        config.init(&device).num_params()
    };
    let plain = count(config());
    assert_eq!(
        count(config().with_absolute_position(AbsolutePosition::Sinusoidal)),
        plain
    );
    let learned = count(config().with_absolute_position(AbsolutePosition::Learned));
    assert_eq!(learned, plain + MAX_LEN * D_MODEL);
    let untied = count(config().with_tied(false));
    assert_eq!(untied, plain + VOCABULARY * D_MODEL);
    let rotary = config();
    let block = rotary
        .block
        .clone()
        .with_position(PositionEncoding::rotary());
    assert_eq!(count(rotary.with_block(block)), plain);
}
