//! Every configuration is the same after JSON, with no field at its default.

use std::fmt::Debug;

use burn::{config::Config, nn::Initializer};
use burn_attn::{
    BlockConfig, CausalTransformerConfig, CrossAttentionConfig, FeedForwardActivation,
    FeedForwardConfig, MultiHeadAttentionConfig, NormConfig, NormPlacement, ProjectionBias,
    SelfAttentionConfig, TiedEmbeddingConfig, TransformerConfig, TransformerDecoderConfig,
    TransformerEncoderConfig,
    positions::{LearnedConfig, SinusoidalConfig},
};
use burn_attn_models::{
    language_model::{AbsolutePosition, LanguageModelConfig},
    seq2seq::Seq2SeqConfig,
};

/// Writes and reads `config`. `Debug` prints every field, so equal text is equal configuration.
fn check<C: Config + Debug>(config: C) {
    let folder = tempfile::tempdir().expect("a folder to write to");
    let path = folder.path().join("config.json");
    config.save(&path).expect("saved");
    let loaded = C::load(&path).expect("loaded");
    assert_eq!(format!("{loaded:?}"), format!("{config:?}"));
}

const INITIALIZER: Initializer = Initializer::Normal {
    mean: 0.25,
    std: 0.125,
};

#[test]
fn attention() {
    check(
        SelfAttentionConfig::new(15, 3)
            .with_causal(true)
            .with_dropout(0.3)
            .with_bias(ProjectionBias::none())
            .with_initializer(INITIALIZER),
    );
    check(
        CrossAttentionConfig::new(15, 3)
            .with_dropout(0.3)
            .with_bias(ProjectionBias::none())
            .with_initializer(INITIALIZER),
    );
    check(
        MultiHeadAttentionConfig::new(15, 3)
            .with_dropout(0.3)
            .with_bias(ProjectionBias::none())
            .with_initializer(INITIALIZER),
    );
}

fn block() -> BlockConfig {
    BlockConfig::new()
        .with_dropout(0.3)
        .with_norm(NormConfig::rms_norm().with_epsilon(0.125))
        .with_norm_placement(NormPlacement::Sandwich)
        .with_parallel(true)
        .with_activation(FeedForwardActivation::GeGluTanh)
        .with_bias(false)
        .with_attention_dropout(Some(0.2))
        .with_projection_bias(Some(ProjectionBias::all().with_output(false)))
        .with_initializer(INITIALIZER)
}

#[test]
fn transformers() {
    check(block());
    check(block().with_norm(NormConfig::layer_norm().with_epsilon(0.125).without_bias()));
    check(
        CausalTransformerConfig::new(15, 29, 3, 2)
            .with_block(block())
            .with_final_norm(Some(true)),
    );
    check(
        TransformerEncoderConfig::new(15, 29, 3, 2)
            .with_block(block())
            .with_final_norm(Some(true)),
    );
    check(
        TransformerDecoderConfig::new(15, 29, 3, 2)
            .with_block(block())
            .with_final_norm(Some(true)),
    );
    check(
        TransformerConfig::new(15, 29, 3, 2, 4)
            .with_block(block())
            .with_final_norm(Some(true)),
    );
}

#[test]
fn parts_of_transformers() {
    check(NormConfig::layer_norm().with_epsilon(0.125).without_bias());
    for placement in [
        NormPlacement::Pre,
        NormPlacement::Post,
        NormPlacement::Sandwich,
    ] {
        check(placement);
    }
    for activation in [
        FeedForwardActivation::Relu,
        FeedForwardActivation::Gelu,
        FeedForwardActivation::GeluTanh,
        FeedForwardActivation::SwiGlu,
        FeedForwardActivation::GeGlu,
        FeedForwardActivation::GeGluTanh,
    ] {
        check(
            FeedForwardConfig::new(15, 29)
                .with_activation(activation)
                .with_dropout(0.3)
                .with_bias(false)
                .with_initializer(INITIALIZER),
        );
    }
    check(
        TiedEmbeddingConfig::new(23, 15)
            .with_scaled(false)
            .with_initializer(Some(INITIALIZER)),
    );
}

#[test]
fn positions() {
    check(
        SinusoidalConfig::new(15)
            .with_max_len(31)
            .with_max_timescale(1000),
    );
    check(LearnedConfig::new(15, 31).with_initializer(INITIALIZER));
}

#[test]
fn models() {
    check(
        Seq2SeqConfig::new(23)
            .with_d_model(15)
            .with_n_heads(3)
            .with_n_encoder_layers(3)
            .with_n_decoder_layers(5)
            .with_d_ff(29)
            .with_dropout(0.3)
            .with_max_len(31)
            .with_norm_placement(NormPlacement::Sandwich),
    );
    check(
        LanguageModelConfig::new(23)
            .with_d_model(15)
            .with_n_heads(3)
            .with_n_layers(5)
            .with_d_ff(29)
            .with_max_len(31)
            .with_block(block())
            .with_position(AbsolutePosition::Learned)
            .with_scaled_embedding(false)
            .with_tied(false),
    );
}
