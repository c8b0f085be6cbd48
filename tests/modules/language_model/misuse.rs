//! Every misuse has its sentence.

use burn::{module::Module, tensor::Tensor};
use burn_attn::{
    BlockConfig, KvCacheConfig,
    positions::{PositionEncoding, RotaryConfig},
};
use burn_attn_models::{
    generate::{Autoregressive, GenerateError, GenerateOptions, generate},
    language_model::{AbsolutePosition, LanguageModel, LanguageModelConfig},
};
use burn_attn_tests::{
    devices,
    numbers::{alone, filled},
    sentence,
};

fn config() -> LanguageModelConfig {
    LanguageModelConfig::new(23)
        .with_d_model(15)
        .with_n_heads(3)
        .with_d_ff(29)
        .with_max_len(11)
}

fn model(config: LanguageModelConfig) -> LanguageModel {
    filled(config.init(&devices::any()), 1)
}

#[test]
fn configurations_that_contradict_themselves() {
    let refused = |config: LanguageModelConfig, expected: &str| {
        let error = config.validate().expect_err("the configuration is bad");
        assert_eq!(error.to_string(), expected);
        assert_eq!(sentence(|| config.init(&devices::any())), expected);
    };
    assert_eq!(config().validate(), Ok(()));
    let zero = |field| format!("LanguageModelConfig: {field} must be at least 1, got 0");
    refused(LanguageModelConfig::new(0), &zero("vocab_size"));
    refused(config().with_max_len(0), &zero("max_len"));
    refused(
        config().with_n_heads(4),
        "LanguageModelConfig: d_model 15 is not divisible by n_heads 4",
    );
    refused(config().with_d_model(0), &zero("d_model"));
    refused(config().with_n_heads(0), &zero("n_heads"));
    refused(config().with_d_ff(0), &zero("d_ff"));
    refused(config().with_n_layers(0), &zero("n_layers"));
    refused(
        config().with_block(BlockConfig::new().with_n_kv_heads(2)),
        "LanguageModelConfig: n_heads 3 is not divisible by n_kv_heads 2",
    );
    refused(
        config().with_block(BlockConfig::new().with_dropout(1.0)),
        "LanguageModelConfig: dropout must be in [0, 1), got 1",
    );
    refused(
        config().with_block(BlockConfig::new().with_position(PositionEncoding::rotary())),
        "LanguageModelConfig: position: RotaryConfig: d_head 5 is odd, but numbers are rotated in pairs",
    );
    let rotary = PositionEncoding::Rotary(RotaryConfig::new().with_max_len(10));
    let block = BlockConfig::new().with_d_head(4).with_position(rotary);
    assert_eq!(
        config()
            .with_max_len(10)
            .with_block(block.clone())
            .validate(),
        Ok(())
    );
    refused(
        config().with_block(block),
        "LanguageModelConfig: max_len 11 is more than the max_len 10 of the heads' rotary positions",
    );
}

#[test]
fn tokens_outside_the_vocabulary() {
    for (name, device) in devices::with_and_without_autodiff() {
        println!("on {name}");
        let model = filled(config().init(&device), 1);
        let beyond = "LanguageModel: token 23 is outside the vocabulary of 23 tokens";
        assert_eq!(
            sentence(|| model.forward(Tensor::from_data([[5, 22], [23, 0]], &device))),
            beyond
        );
        assert_eq!(
            sentence(|| model.attention(Tensor::from_data([[23]], &device))),
            beyond
        );
        assert_eq!(
            sentence(|| model.forward(Tensor::from_data([[5, -1]], &device))),
            "LanguageModel: token -1 is outside the vocabulary of 23 tokens"
        );
    }
}

#[cfg(feature = "wgpu")]
#[test]
fn tokens_on_wgpu_are_not_read() {
    let Some(device) = devices::wgpu() else {
        return;
    };
    // Who looks at the tokens refuses them, and has waited for the device.
    let model = filled(config().init(&device), 1);
    let logits = model.forward(Tensor::from_data([[5, 22], [23, 0]], &device));
    assert_eq!(logits.dims(), [2, 2, 23]);
}

#[test]
fn new_tokens_outside_the_vocabulary() {
    let model = model(config());
    let mut state = model.start(2);
    assert_eq!(
        sentence(|| model.advance(&mut state, &[&[5], &[22, 23]])),
        "LanguageModel: token 23 of row 1 is outside the vocabulary of 23 tokens"
    );
    // Nothing was read.
    assert_eq!(model.lengths(&state), [0, 0]);
    model.advance(&mut state, &[&[5], &[22, 0]]);
}

#[test]
fn more_tokens_than_positions() {
    let device = devices::any();
    for (position, name) in [
        (AbsolutePosition::Sinusoidal, "Sinusoidal"),
        (AbsolutePosition::Learned, "Learned"),
    ] {
        let model = model(config().with_absolute_position(position));
        let tokens = |len| Tensor::zeros([2, len], &device);
        model.forward(tokens(11));
        assert_eq!(
            sentence(|| model.forward(tokens(12))),
            format!("{name}: 12 tokens from position 0 on need 12 positions, but there are 11")
        );
        // The sentence names the row that is too long.
        let mut state = model.start(2);
        model.advance(&mut state, &[&[7; 10], &[7; 3]]);
        assert_eq!(
            sentence(|| model.advance(&mut state, &[&[7; 2], &[7; 5]])),
            format!("{name}: 2 tokens from position 10 on need 12 positions, but there are 11")
        );
        model.advance(&mut state, &[&[7], &[7; 5]]);
    }
}

#[test]
fn a_full_state() {
    let model = model(config());
    let mut state = model.start(2);
    model.advance(&mut state, &[&[7; 11], &[7; 10]]);
    assert_eq!(
        sentence(|| model.advance(&mut state, &[&[7], &[7]])),
        "KvCache: sequence 0 has 11 tokens and cannot take 1 more: its max_len is 11"
    );
    let long = [vec![7; 12]];
    let refused = generate(&model, model.start(1), &long, &GenerateOptions::new(1));
    assert_eq!(
        refused.unwrap_err().to_string(),
        "generate: prompt 0 brings its row to 12 tokens, but the model holds at most 11"
    );
}

#[test]
fn rows_that_do_not_fit_the_state() {
    let one = model(config());
    let mut state = one.start(2);
    assert_eq!(
        sentence(|| one.advance(&mut state, &[&[7]])),
        "LanguageModel: tokens of 1 rows for a state of 2"
    );
    assert_eq!(
        sentence(|| one.advance(&mut state, &[&[7], &[]])),
        "LanguageModel: row 1 has no new token"
    );
    assert_eq!(
        sentence(|| one.start_with(2, &KvCacheConfig::new(10))),
        "LanguageModel: a cache of max_len 10 is too short for a model of max_len 11"
    );
}

#[test]
fn a_model_in_training() {
    // Dropout draws seeds.
    let _alone = alone();
    for (_, device) in devices::cpu() {
        let config = config().with_block(BlockConfig::new().with_dropout(0.5));
        let model = filled(config.init(&device.clone().autodiff()), 1);
        let prompts = [vec![7], vec![3, 5]];
        let options = GenerateOptions::new(5);
        let run = |model: &LanguageModel| generate(model, model.start(2), &prompts, &options);
        assert_eq!(run(&model), Err(GenerateError::Autodiff));
        let model = model.valid();
        let first = run(&model).unwrap();
        assert_eq!(first, run(&model).unwrap());
    }
}
