//! What stands before and behind the stacks, and how their layers are built.

use burn::{
    nn::Initializer,
    tensor::{Device, Int, Tensor},
};
use burn_attn::{
    BlockConfig, FeedForwardActivation, LayerInput, NormPlacement,
    positions::{PositionEncoding, RotaryConfig, SinusoidalConfig},
};
use burn_attn_models::{
    language_model::AbsolutePosition,
    seq2seq::{Seq2Seq, Seq2SeqConfig},
};
use burn_attn_tests::{
    compare::{assert_close, assert_same},
    devices,
    numbers::filled,
    sentence,
};

use super::{MAX_LEN, VOCABULARY, batch, sources};

const D_MODEL: usize = 12;
const TARGET: [[i32; 3]; 3] = [[0, 2, 5], [0, 3, 1], [0, 4, 12]];

fn config() -> Seq2SeqConfig {
    Seq2SeqConfig::new(VOCABULARY)
        .with_d_model(D_MODEL)
        .with_n_heads(3)
        .with_d_ff(29)
        .with_max_len(MAX_LEN)
}

fn logits(model: &Seq2Seq, device: &Device) -> Tensor<3> {
    let (tokens, lengths) = batch(&sources(), 0, 5, device);
    model.forward(tokens, &lengths, Tensor::from_data(TARGET, device))
}

/// Embedded tokens with their positions added, by hand.
fn embedded(
    model: &Seq2Seq,
    config: &Seq2SeqConfig,
    tokens: Tensor<2, Int>,
    device: &Device,
) -> Tensor<3> {
    let [batch, len] = tokens.dims();
    let rows: Tensor<1, Int> = tokens.flatten(0, 1);
    let x = model.embedding.weight.val().select(0, rows);
    let x = x.reshape([batch, len, D_MODEL]);
    let x = match config.scaled_embedding {
        true => x * (D_MODEL as f64).sqrt(),
        false => x,
    };
    match config.absolute_position {
        AbsolutePosition::Learned => {
            let table = model.learned.as_ref().expect("a table").table.val();
            x + table.narrow(0, 0, len).unsqueeze()
        }
        AbsolutePosition::Sinusoidal => SinusoidalConfig::new(D_MODEL).init(device).forward(x),
        _ => x,
    }
}

#[test]
fn logits_are_written_out() {
    let positions = [
        AbsolutePosition::None,
        AbsolutePosition::Sinusoidal,
        AbsolutePosition::Learned,
    ];
    for (name, device) in devices::cpu() {
        for position in positions {
            for (scaled, tied, factor) in [
                (true, true, None),
                (false, true, Some(0.25)),
                (false, false, None),
            ] {
                let config = config()
                    .with_absolute_position(position)
                    .with_scaled_embedding(scaled)
                    .with_tied(tied)
                    .with_output_factor(factor);
                let model = filled(config.init(&device), 1);
                let (tokens, lengths) = batch(&sources(), 0, 5, &device);
                let x = embedded(&model, &config, tokens.clone(), &device);
                let input = LayerInput::new(x).lengths(&lengths);
                let memory = model.transformer.encoder.forward(input);
                let target = Tensor::from_data(TARGET, &device);
                let x = embedded(&model, &config, target.clone(), &device);
                let input = LayerInput::new(x).memory(memory).memory_lengths(&lengths);
                let states = model.transformer.decoder.forward(input);
                let states = states.reshape([9, D_MODEL]) * factor.unwrap_or(1.0);
                assert_eq!(model.head.is_none(), tied);
                let projection = match &model.head {
                    Some(head) => head.weight.val(),
                    None => model.embedding.weight.val().transpose(),
                };
                let expected = states.matmul(projection).reshape([3, 3, VOCABULARY]);
                let logits = model.forward(tokens, &lengths, target);
                assert_close(name, &logits.into_data(), &expected.into_data(), 1e-5);
            }
        }
    }
}

#[test]
fn the_block_of_the_paper_is_the_default() {
    let device = devices::any();
    let block = BlockConfig::new()
        .with_dropout(0.25)
        .with_norm_placement(NormPlacement::Post)
        .with_activation(FeedForwardActivation::Relu)
        .with_initializer(Initializer::XavierUniform { gain: 1.0 });
    let of_fields = config()
        .with_dropout(0.25)
        .with_norm_placement(NormPlacement::Post);
    let of_block = config().with_dropout(0.25).with_block(block);
    let [first, second] = [of_fields, of_block].map(|config| filled(config.init(&device), 1));
    assert_same(&logits(&first, &device), &logits(&second, &device));
}

#[test]
fn both_stacks_are_built_like_the_block() {
    let device = devices::any();
    let block = BlockConfig::new()
        .with_norm_placement(NormPlacement::Sandwich)
        .with_activation(FeedForwardActivation::GeGlu)
        .with_bias(false)
        .with_d_head(2)
        .with_position(PositionEncoding::relative());
    let model = config().with_block(block).init(&device);
    for stack in [&model.transformer.encoder, &model.transformer.decoder] {
        let [layer, _] = &stack.layers[..] else {
            panic!("two layers")
        };
        assert!(layer.self_attention_residual.output_norm.is_some());
        let feed_forward = layer
            .feed_forward
            .as_ref()
            .expect("a layer without experts");
        let inner = &feed_forward.linear_inner;
        assert_eq!(
            (inner.weight.dims(), inner.bias.is_none()),
            ([12, 58], true)
        );
        let projections = &layer.self_attention.query_key_value;
        assert_eq!(projections.weight.dims(), [12, 18]);
        assert_eq!(stack.positions.len(), 1);
    }
}

#[test]
fn no_states_have_no_logits() {
    for (_, device) in devices::cpu() {
        let model = config().with_tied(false).init(&device);
        let none = Tensor::<3>::zeros([0, 5, D_MODEL], &device);
        assert_eq!(model.logits(none).dims(), [0, 5, VOCABULARY]);
    }
}

#[test]
fn configurations_that_contradict_themselves() {
    let refused = |config: Seq2SeqConfig, expected: &str| {
        let error = config.validate().expect_err("the configuration is bad");
        assert_eq!(error.to_string(), expected);
        assert_eq!(sentence(|| config.init(&devices::any())), expected);
    };
    let block = BlockConfig::new;
    refused(
        config().with_block(block()).with_dropout(1.0),
        "Seq2SeqConfig: dropout must be in [0, 1), got 1",
    );
    refused(
        config().with_block(block().with_dropout(1.5)),
        "Seq2SeqConfig: dropout must be in [0, 1), got 1.5",
    );
    refused(
        config().with_tied(false).with_output_factor(0.5),
        "Seq2SeqConfig: output_factor is that of a tied embedding, but tied is false and output_factor 0.5",
    );
    refused(
        config().with_output_factor(0.0),
        "Seq2SeqConfig: output_factor must be positive and finite, got 0",
    );
    let rotary = PositionEncoding::Rotary(RotaryConfig::new().with_max_len(10));
    refused(
        config().with_block(block().with_position(rotary)),
        "Seq2SeqConfig: max_len 11 is more than the max_len 10 of the heads' rotary positions",
    );
    refused(
        config().with_block(block().with_parallel(true)),
        "Seq2SeqConfig: parallel is true, but a parallel layer has no place for cross-attention",
    );
}
