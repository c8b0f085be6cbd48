//! Configurations that contradict themselves: `validate` returns the error, and `init` panics with its sentence.

use burn_attn::{
    BlockConfig, CrossAttentionConfig, FeedForwardConfig, MultiHeadAttentionConfig, NormConfig,
    SelfAttentionConfig, TiedEmbeddingConfig, TransformerConfig, TransformerStackConfig,
    positions::{LearnedConfig, SinusoidalConfig, SinusoidalLayout},
};
use burn_attn_models::seq2seq::Seq2SeqConfig;
use burn_attn_tests::{devices, sentence};

use super::refused_by_stacks;

#[test]
fn sound_configurations_are_accepted() {
    let parallel = || BlockConfig::new().with_parallel(true);
    let encoder = TransformerStackConfig::encoder(15, 29, 3, 2);
    let causal = TransformerStackConfig::causal(15, 29, 3, 2);
    for accepted in [
        SelfAttentionConfig::new(15, 3).validate(),
        CrossAttentionConfig::new(15, 3).validate(),
        MultiHeadAttentionConfig::new(15, 3).validate(),
        encoder.validate(),
        encoder.with_block(parallel()).validate(),
        causal.with_block(parallel()).validate(),
        TransformerStackConfig::decoder(15, 29, 3, 2).validate(),
        TransformerConfig::new(15, 29, 3, 2, 2).validate(),
        FeedForwardConfig::new(15, 29).validate(),
        NormConfig::layer_norm().validate(),
        TiedEmbeddingConfig::new(23, 15).validate(),
        SinusoidalConfig::new(15).validate(),
        LearnedConfig::new(15, 31).validate(),
        Seq2SeqConfig::new(23).validate(),
    ] {
        assert_eq!(accepted, Ok(()));
    }
    // No dropout, and almost nothing else.
    for dropout in [0.0, 0.999] {
        let config = SelfAttentionConfig::new(1, 1).with_dropout(dropout);
        assert_eq!(config.validate(), Ok(()));
    }
}

#[test]
fn heads_that_do_not_divide_the_width() {
    let reason = "d_model 15 is not divisible by n_heads 4";
    refused!(SelfAttentionConfig::new(15, 4), reason);
    refused!(CrossAttentionConfig::new(15, 4), reason);
    refused!(
        MultiHeadAttentionConfig::new(15, 16),
        "d_model 15 is not divisible by n_heads 16"
    );
    refused!(TransformerStackConfig::encoder(15, 29, 4, 2), reason);
    refused!(TransformerStackConfig::decoder(15, 29, 4, 2), reason);
    refused!(TransformerConfig::new(15, 29, 4, 2, 2), reason);
    // The message names the configuration that the user wrote.
    let model = Seq2SeqConfig::new(23).with_d_model(15).with_n_heads(4);
    refused!(model, reason);
}

/// The reason of a size that is 0.
fn none(field: &str) -> String {
    format!("{field} must be at least 1, got 0")
}

#[test]
fn attention_without_size() {
    for ([d_model, n_heads], field) in [([0, 3], "d_model"), ([15, 0], "n_heads")] {
        refused!(SelfAttentionConfig::new(d_model, n_heads), none(field));
        refused!(CrossAttentionConfig::new(d_model, n_heads), none(field));
        refused!(MultiHeadAttentionConfig::new(d_model, n_heads), none(field));
    }
}

#[test]
fn stacks_without_size() {
    for ([d_model, d_ff, n_heads, n_layers], field) in [
        ([0, 29, 3, 2], "d_model"),
        ([15, 0, 3, 2], "d_ff"),
        ([15, 29, 0, 2], "n_heads"),
        ([15, 29, 3, 0], "n_layers"),
    ] {
        for stack in [
            TransformerStackConfig::encoder,
            TransformerStackConfig::causal,
            TransformerStackConfig::decoder,
        ] {
            refused!(stack(d_model, d_ff, n_heads, n_layers), none(field));
        }
    }
    for ([d_model, d_ff, n_heads, n_encoder_layers, n_decoder_layers], field) in [
        ([0, 29, 3, 2, 2], "d_model"),
        ([15, 0, 3, 2, 2], "d_ff"),
        ([15, 29, 0, 2, 2], "n_heads"),
        ([15, 29, 3, 0, 2], "n_encoder_layers"),
        ([15, 29, 3, 2, 0], "n_decoder_layers"),
    ] {
        refused!(
            TransformerConfig::new(d_model, d_ff, n_heads, n_encoder_layers, n_decoder_layers),
            none(field)
        );
        refused!(
            Seq2SeqConfig::new(23)
                .with_d_model(d_model)
                .with_d_ff(d_ff)
                .with_n_heads(n_heads)
                .with_n_encoder_layers(n_encoder_layers)
                .with_n_decoder_layers(n_decoder_layers),
            none(field)
        );
    }
}

#[test]
fn blocks_that_contradict_themselves() {
    let parallel = BlockConfig::new().with_parallel(true);
    let reason = "parallel is true, but a parallel layer has no place for cross-attention";
    let decoder = TransformerStackConfig::decoder(15, 29, 3, 2);
    refused!(decoder.with_block(parallel.clone()), reason);
    let both = TransformerConfig::new(15, 29, 3, 2, 2);
    refused!(both.with_block(parallel), reason);
    for (epsilon, shown) in [
        (0.0, "0"),
        (-1e-5, "-0.00001"),
        (f64::NAN, "NaN"),
        (f64::INFINITY, "inf"),
    ] {
        for (norm, named) in [
            (NormConfig::rms_norm().with_epsilon(epsilon), "RmsNorm"),
            (NormConfig::layer_norm().with_epsilon(epsilon), "LayerNorm"),
        ] {
            let reason = format!("{named}: epsilon must be positive and finite, got {shown}");
            let expected = format!("NormConfig: {reason}");
            let error = norm.validate().expect_err("the configuration is bad");
            assert_eq!(error.to_string(), expected);
            let built = sentence(|| norm.init(15, &devices::any()));
            assert_eq!(built, expected);
            refused_by_stacks(&BlockConfig::new().with_norm(norm), &reason);
        }
    }
}

#[test]
fn parts_without_size() {
    for norm in [NormConfig::layer_norm(), NormConfig::rms_norm()] {
        assert_eq!(
            sentence(|| norm.init(0, &devices::any())),
            "NormConfig: d_model must be at least 1, got 0"
        );
    }
    for ([d_model, d_ff], field) in [([0, 29], "d_model"), ([15, 0], "d_ff")] {
        refused!(FeedForwardConfig::new(d_model, d_ff), none(field));
    }
    for ([vocab_size, d_model], field) in [([0, 15], "vocab_size"), ([23, 0], "d_model")] {
        refused!(TiedEmbeddingConfig::new(vocab_size, d_model), none(field));
    }
    let embedding = || TiedEmbeddingConfig::new(23, 15);
    refused!(
        embedding().with_input_factor(0.0),
        "input_factor must be positive and finite, got 0"
    );
    refused!(
        embedding().with_output_factor(f64::NAN),
        "output_factor must be positive and finite, got NaN"
    );
}

#[test]
fn positions_and_vocabularies_without_size() {
    let sinusoidal = SinusoidalConfig::new;
    refused!(sinusoidal(0), none("d_model"));
    refused!(sinusoidal(15).with_max_len(0), none("max_len"));
    refused!(sinusoidal(15).with_max_timescale(0), none("max_timescale"));
    for d_model in [2, 15] {
        refused!(
            sinusoidal(d_model).with_layout(SinusoidalLayout::Tensor2Tensor),
            format!("layout Tensor2Tensor needs an even d_model of at least 4, got {d_model}")
        );
    }
    refused!(LearnedConfig::new(0, 31), none("d_model"));
    refused!(LearnedConfig::new(15, 0), none("max_len"));
    refused!(Seq2SeqConfig::new(0), none("vocab_size"));
    refused!(Seq2SeqConfig::new(23).with_max_len(0), none("max_len"));
}

#[test]
fn dropout_that_is_no_probability_or_drops_everything() {
    for (dropout, shown) in [
        (1.0, "1"),
        (1.5, "1.5"),
        (-0.1, "-0.1"),
        (f64::NAN, "NaN"),
        (f64::INFINITY, "inf"),
    ] {
        let reason = format!("dropout must be in [0, 1), got {shown}");
        refused_by_stacks(&BlockConfig::new().with_dropout(dropout), &reason);
        refused!(
            SelfAttentionConfig::new(15, 3).with_dropout(dropout),
            reason
        );
        refused!(
            CrossAttentionConfig::new(15, 3).with_dropout(dropout),
            reason
        );
        refused!(
            MultiHeadAttentionConfig::new(15, 3).with_dropout(dropout),
            reason
        );
        refused!(FeedForwardConfig::new(15, 29).with_dropout(dropout), reason);
        refused!(Seq2SeqConfig::new(23).with_dropout(dropout), reason);
    }
}
