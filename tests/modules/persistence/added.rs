//! Configurations that were saved before something was added to them, and what was.

use burn_attn::{
    BlockConfig, CausalTransformerConfig, FeedForwardActivation, FeedForwardConfig, LayerPattern,
    NormPlacement, TransformerConfig, TransformerDecoderConfig, TransformerEncoderConfig,
    TransformerLayerConfig, TransformerStackConfig, positions::SinusoidalLayout,
};
use burn_attn_models::{
    bert::BertConfig,
    language_model::{AbsolutePosition, LanguageModelConfig},
    seq2seq::Seq2SeqConfig,
};

use super::{configs::loads, values};

/// Saved with every field at its default before the defaults became burn-nn's and decoders had a choice: pre-norm, ReLU, causal.
#[test]
fn first_defaults() {
    let block = || {
        BlockConfig::new()
            .with_norm_placement(NormPlacement::Pre)
            .with_activation(FeedForwardActivation::Relu)
    };
    loads("first/BlockConfig", &block());
    loads(
        "first/FeedForwardConfig",
        &FeedForwardConfig::new(15, 29).with_activation(FeedForwardActivation::Relu),
    );
    loads(
        "first/TransformerEncoderConfig",
        &TransformerEncoderConfig::new(15, 29, 3, 2).with_block(block()),
    );
    loads(
        "first/CausalTransformerConfig",
        &CausalTransformerConfig::new(15, 29, 3, 2).with_block(block()),
    );
    let decoder = TransformerDecoderConfig::new(15, 29, 3, 2).with_block(block());
    loads("first/TransformerDecoderConfig", &decoder.with_causal(true));
    loads(
        "first/TransformerConfig",
        &TransformerConfig::new(15, 29, 3, 2, 4).with_block(block()),
    );
    loads("first/Seq2SeqConfig", &Seq2SeqConfig::new(23));
    loads(
        "first/LanguageModelConfig",
        &LanguageModelConfig::new(23).with_block(block()),
    );
}

/// What was added to the configurations of blocks and stacks.
#[test]
fn stacks_with_what_was_added() {
    let block = || {
        BlockConfig::new()
            .with_norm_placement(NormPlacement::Pre)
            .with_parallel(true)
            .with_separate_norms(true)
    };
    loads("added/BlockConfig", &block());
    loads(
        "added/BlockConfigWithExperts",
        &block().with_experts(values::experts()),
    );
    loads(
        "added/BlockConfigWithFeedForwardDropout",
        &block().with_feed_forward_dropout(0.25),
    );
    loads("added/NormPlacement", &NormPlacement::Output);
    loads(
        "added/LayerPattern",
        &vec![
            LayerPattern::Alike,
            LayerPattern::Cycle(vec![block(), BlockConfig::new()]),
            LayerPattern::Shared(2),
        ],
    );
    let pattern = || LayerPattern::Cycle(vec![block()]);
    loads(
        "added/TransformerEncoderConfig",
        &TransformerEncoderConfig::new(15, 29, 3, 2).with_pattern(pattern()),
    );
    loads(
        "added/CausalTransformerConfig",
        &CausalTransformerConfig::new(15, 29, 3, 2).with_pattern(pattern()),
    );
    loads(
        "added/TransformerDecoderConfig",
        &TransformerDecoderConfig::new(15, 29, 3, 2)
            .with_pattern(LayerPattern::Shared(2))
            .with_d_memory(11),
    );
    loads(
        "added/TransformerDecoderConfigWithCausal",
        &TransformerDecoderConfig::new(15, 29, 3, 2).with_causal(true),
    );
    loads(
        "added/TransformerStackConfig",
        &TransformerStackConfig::new(15, 29, 3, 2)
            .with_causal(true)
            .with_d_memory(11)
            .with_block(values::block())
            .with_pattern(LayerPattern::Shared(1))
            .with_final_norm(true),
    );
    loads(
        "added/TransformerLayerConfig",
        &TransformerLayerConfig::new(15, 29, 3)
            .with_causal(true)
            .with_d_memory(11)
            .with_block(values::block()),
    );
}

#[test]
fn models() {
    loads(
        "added/BertConfig",
        &BertConfig::new(23)
            .with_d_embedding(7)
            .with_pattern(LayerPattern::Shared(2))
            .with_pooler(false)
            .with_block(values::block()),
    );
    loads(
        "added/BertConfigWithSizes",
        &BertConfig::new(23)
            .with_d_model(15)
            .with_n_heads(3)
            .with_n_layers(5)
            .with_d_ff(29)
            .with_max_len(31)
            .with_n_segments(7)
            // Before it had a field, that of the other parts.
            .with_block(BertConfig::base_block().with_feed_forward_dropout(None)),
    );
    loads(
        "added/LanguageModelConfigWithAbsolutePosition",
        &LanguageModelConfig::new(23).with_absolute_position(AbsolutePosition::Sinusoidal),
    );
    loads(
        "added/LanguageModelConfig",
        &LanguageModelConfig::new(23)
            .with_pattern(LayerPattern::Cycle(vec![values::block()]))
            .with_logit_softcap(30.0),
    );
    loads(
        "added/Seq2SeqConfig",
        &Seq2SeqConfig::new(23)
            .with_block(values::block())
            .with_absolute_position(AbsolutePosition::Learned)
            .with_scaled_embedding(false)
            .with_tied(false)
            .with_output_factor(0.25),
    );
}

/// Saved before these configurations got the fields that `added` has.
#[test]
fn fields_that_were_added() {
    loads(
        "SinusoidalConfig",
        &values::sinusoidal().with_layout(SinusoidalLayout::Interleaved),
    );
    loads(
        "TiedEmbeddingConfig",
        &values::tied_embedding()
            .with_input_factor(None)
            .with_output_factor(None)
            .with_bias(false),
    );
}

#[test]
fn fields_that_are_missing() {
    let without = |field: &str| {
        let mut saved = serde_json::to_value(values::decoder()).expect("written");
        let fields = saved.as_object_mut().expect("an object");
        fields.remove(field).expect("the field");
        serde_json::from_value::<TransformerDecoderConfig>(saved)
    };
    // Before there was a choice, decoders were causal.
    assert!(without("causal").expect("loaded").causal);
    let error = without("block").expect_err("a block is needed").to_string();
    assert!(error.starts_with("missing field `block`"), "{error}");
}
