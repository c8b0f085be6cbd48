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
    assert_eq!(SelfAttentionConfig::new(15, 3).validate(), Ok(()));
    assert_eq!(CrossAttentionConfig::new(15, 3).validate(), Ok(()));
    assert_eq!(MultiHeadAttentionConfig::new(15, 3).validate(), Ok(()));
    assert_eq!(
        TransformerStackConfig::encoder(15, 29, 3, 2).validate(),
        Ok(())
    );
    assert_eq!(
        TransformerStackConfig::decoder(15, 29, 3, 2).validate(),
        Ok(())
    );
    assert_eq!(TransformerConfig::new(15, 29, 3, 2, 2).validate(), Ok(()));
    let parallel = BlockConfig::new().with_parallel(true);
    assert_eq!(
        TransformerStackConfig::causal(15, 29, 3, 2)
            .with_block(parallel.clone())
            .validate(),
        Ok(())
    );
    assert_eq!(
        TransformerStackConfig::encoder(15, 29, 3, 2)
            .with_block(parallel)
            .validate(),
        Ok(())
    );
    assert_eq!(FeedForwardConfig::new(15, 29).validate(), Ok(()));
    assert_eq!(NormConfig::layer_norm().validate(), Ok(()));
    assert_eq!(TiedEmbeddingConfig::new(23, 15).validate(), Ok(()));
    assert_eq!(SinusoidalConfig::new(15).validate(), Ok(()));
    assert_eq!(LearnedConfig::new(15, 31).validate(), Ok(()));
    assert_eq!(Seq2SeqConfig::new(23).validate(), Ok(()));
    // No dropout, and almost nothing else.
    for dropout in [0.0, 0.999] {
        assert_eq!(
            SelfAttentionConfig::new(1, 1)
                .with_dropout(dropout)
                .validate(),
            Ok(())
        );
    }
}

#[test]
fn heads_that_do_not_divide_the_width() {
    refused!(
        SelfAttentionConfig::new(15, 4),
        "SelfAttentionConfig: d_model 15 is not divisible by n_heads 4"
    );
    refused!(
        CrossAttentionConfig::new(15, 4),
        "CrossAttentionConfig: d_model 15 is not divisible by n_heads 4"
    );
    refused!(
        MultiHeadAttentionConfig::new(15, 16),
        "MultiHeadAttentionConfig: d_model 15 is not divisible by n_heads 16"
    );
    refused!(
        TransformerStackConfig::encoder(15, 29, 4, 2),
        "TransformerStackConfig: d_model 15 is not divisible by n_heads 4"
    );
    refused!(
        TransformerStackConfig::decoder(15, 29, 4, 2),
        "TransformerStackConfig: d_model 15 is not divisible by n_heads 4"
    );
    refused!(
        TransformerConfig::new(15, 29, 4, 2, 2),
        "TransformerConfig: d_model 15 is not divisible by n_heads 4"
    );
    // The message names the configuration that the user wrote.
    refused!(
        Seq2SeqConfig::new(23).with_d_model(15).with_n_heads(4),
        "Seq2SeqConfig: d_model 15 is not divisible by n_heads 4"
    );
}

#[test]
fn attention_without_size() {
    refused!(
        SelfAttentionConfig::new(0, 3),
        "SelfAttentionConfig: d_model must be at least 1, got 0"
    );
    refused!(
        SelfAttentionConfig::new(15, 0),
        "SelfAttentionConfig: n_heads must be at least 1, got 0"
    );
    refused!(
        CrossAttentionConfig::new(0, 3),
        "CrossAttentionConfig: d_model must be at least 1, got 0"
    );
    refused!(
        CrossAttentionConfig::new(15, 0),
        "CrossAttentionConfig: n_heads must be at least 1, got 0"
    );
    refused!(
        MultiHeadAttentionConfig::new(0, 3),
        "MultiHeadAttentionConfig: d_model must be at least 1, got 0"
    );
    refused!(
        MultiHeadAttentionConfig::new(15, 0),
        "MultiHeadAttentionConfig: n_heads must be at least 1, got 0"
    );
}

#[test]
fn stacks_without_size() {
    let encoder =
        |sizes: [usize; 4]| TransformerStackConfig::encoder(sizes[0], sizes[1], sizes[2], sizes[3]);
    let decoder =
        |sizes: [usize; 4]| TransformerStackConfig::decoder(sizes[0], sizes[1], sizes[2], sizes[3]);
    let causal =
        |sizes: [usize; 4]| TransformerStackConfig::causal(sizes[0], sizes[1], sizes[2], sizes[3]);
    let cases = [
        ([0, 29, 3, 2], "d_model"),
        ([15, 0, 3, 2], "d_ff"),
        ([15, 29, 0, 2], "n_heads"),
        ([15, 29, 3, 0], "n_layers"),
    ];
    for (sizes, field) in cases {
        refused!(
            encoder(sizes),
            format!("TransformerStackConfig: {field} must be at least 1, got 0")
        );
        refused!(
            causal(sizes),
            format!("TransformerStackConfig: {field} must be at least 1, got 0")
        );
        refused!(
            decoder(sizes),
            format!("TransformerStackConfig: {field} must be at least 1, got 0")
        );
    }
    let cases = [
        ([0, 29, 3, 2, 2], "d_model"),
        ([15, 0, 3, 2, 2], "d_ff"),
        ([15, 29, 0, 2, 2], "n_heads"),
        ([15, 29, 3, 0, 2], "n_encoder_layers"),
        ([15, 29, 3, 2, 0], "n_decoder_layers"),
    ];
    for ([d_model, d_ff, n_heads, n_encoder_layers, n_decoder_layers], field) in cases {
        refused!(
            TransformerConfig::new(d_model, d_ff, n_heads, n_encoder_layers, n_decoder_layers),
            format!("TransformerConfig: {field} must be at least 1, got 0")
        );
        refused!(
            Seq2SeqConfig::new(23)
                .with_d_model(d_model)
                .with_d_ff(d_ff)
                .with_n_heads(n_heads)
                .with_n_encoder_layers(n_encoder_layers)
                .with_n_decoder_layers(n_decoder_layers),
            format!("Seq2SeqConfig: {field} must be at least 1, got 0")
        );
    }
}

#[test]
fn blocks_that_contradict_themselves() {
    let parallel = BlockConfig::new().with_parallel(true);
    let expected = |name: &str| {
        format!("{name}: parallel is true, but a parallel layer has no place for cross-attention")
    };
    refused!(
        TransformerStackConfig::decoder(15, 29, 3, 2).with_block(parallel.clone()),
        expected("TransformerStackConfig")
    );
    refused!(
        TransformerConfig::new(15, 29, 3, 2, 2).with_block(parallel),
        expected("TransformerConfig")
    );
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
        refused!(
            FeedForwardConfig::new(d_model, d_ff),
            format!("FeedForwardConfig: {field} must be at least 1, got 0")
        );
    }
    for ([vocab_size, d_model], field) in [([0, 15], "vocab_size"), ([23, 0], "d_model")] {
        refused!(
            TiedEmbeddingConfig::new(vocab_size, d_model),
            format!("TiedEmbeddingConfig: {field} must be at least 1, got 0")
        );
    }
    let embedding = || TiedEmbeddingConfig::new(23, 15);
    refused!(
        embedding().with_input_factor(0.0),
        "TiedEmbeddingConfig: input_factor must be positive and finite, got 0"
    );
    refused!(
        embedding().with_output_factor(f64::NAN),
        "TiedEmbeddingConfig: output_factor must be positive and finite, got NaN"
    );
}

#[test]
fn positions_and_vocabularies_without_size() {
    refused!(
        SinusoidalConfig::new(0),
        "SinusoidalConfig: d_model must be at least 1, got 0"
    );
    refused!(
        SinusoidalConfig::new(15).with_max_len(0),
        "SinusoidalConfig: max_len must be at least 1, got 0"
    );
    refused!(
        SinusoidalConfig::new(15).with_max_timescale(0),
        "SinusoidalConfig: max_timescale must be at least 1, got 0"
    );
    for d_model in [2, 15] {
        refused!(
            SinusoidalConfig::new(d_model).with_layout(SinusoidalLayout::Tensor2Tensor),
            format!(
                "SinusoidalConfig: layout Tensor2Tensor needs an even d_model of at least 4, got {d_model}"
            )
        );
    }
    refused!(
        LearnedConfig::new(0, 31),
        "LearnedConfig: d_model must be at least 1, got 0"
    );
    refused!(
        LearnedConfig::new(15, 0),
        "LearnedConfig: max_len must be at least 1, got 0"
    );
    refused!(
        Seq2SeqConfig::new(0),
        "Seq2SeqConfig: vocab_size must be at least 1, got 0"
    );
    refused!(
        Seq2SeqConfig::new(23).with_max_len(0),
        "Seq2SeqConfig: max_len must be at least 1, got 0"
    );
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
        let expected = |name: &str| format!("{name}: {reason}");
        refused!(
            SelfAttentionConfig::new(15, 3).with_dropout(dropout),
            expected("SelfAttentionConfig")
        );
        refused!(
            CrossAttentionConfig::new(15, 3).with_dropout(dropout),
            expected("CrossAttentionConfig")
        );
        refused!(
            MultiHeadAttentionConfig::new(15, 3).with_dropout(dropout),
            expected("MultiHeadAttentionConfig")
        );
        refused!(
            FeedForwardConfig::new(15, 29).with_dropout(dropout),
            expected("FeedForwardConfig")
        );
        refused!(
            Seq2SeqConfig::new(23).with_dropout(dropout),
            expected("Seq2SeqConfig")
        );
    }
}
