//! Configurations that were saved before something was added to them, and what was.

use burn::nn::Initializer;
use burn_attn::{
    BlockConfig, ExpertsConfig, FeedForwardActivation, FeedForwardConfig, GatedDeltaRuleConfig,
    LatentAttentionConfig, LayerPattern, NormConfig, NormPlacement, QkNormConfig,
    TransformerConfig, TransformerLayerConfig, TransformerStackConfig,
    positions::{PositionEncoding, RotaryAxes, RotaryConfig, RotaryLayout, SinusoidalLayout},
};
use burn_attn_models::{
    bert::BertConfig,
    language_model::{AbsolutePosition, LanguageModelConfig},
    seq2seq::Seq2SeqConfig,
};

use super::{configs::loads, values};

/// Saved with every field at its default before the defaults became burn-nn's: pre-norm, ReLU.
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
        "first/TransformerConfig",
        &TransformerConfig::new(15, 29, 3, 2, 4).with_block(block()),
    );
    loads("first/Seq2SeqConfig", &Seq2SeqConfig::new(23));
    loads(
        "first/LanguageModelConfig",
        &LanguageModelConfig::new(23).with_block(block()),
    );
}

#[test]
fn mixers_of_tokens() {
    let initializer = Initializer::Normal {
        mean: 0.25,
        std: 0.125,
    };
    loads(
        "added/LatentAttentionConfig",
        &LatentAttentionConfig::new(15, 3, 7, 5, 4, 6)
            .with_d_query_latent(8)
            .with_scale(0.25)
            .with_position(PositionEncoding::None)
            .with_dropout(0.125)
            .with_bias(true)
            .with_norm_epsilon(1e-4)
            .with_initializer(initializer.clone()),
    );
    loads(
        "added/GatedDeltaRuleConfig",
        &GatedDeltaRuleConfig::new(15, 2, 4, 5, 3)
            .with_kernel_len(3)
            .with_norm_epsilon(1e-4)
            .with_chunk_len(32)
            .with_initializer(initializer),
    );
}

/// What was added to the configurations of blocks and layers.
#[test]
fn layers_with_what_was_added() {
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
    loads(
        "added/BlockConfigWithFeedForwardResidualDropout",
        &block()
            .with_feed_forward_dropout(0.25)
            .with_feed_forward_residual_dropout(0.5),
    );
    loads(
        "added/BlockConfigWithResiduals",
        &BlockConfig::new()
            .with_norm_placement(NormPlacement::Pre)
            .with_attention_norm(false)
            .with_layer_scale(0.375)
            .with_stochastic_depth(0.25)
            .with_d_ff(37),
    );
    loads(
        "added/BlockConfigWithSharedKeyValue",
        &BlockConfig::new()
            .with_norm_placement(NormPlacement::Pre)
            .with_shared_key_value(true),
    );
    loads(
        "added/HeadsConfigWithGate",
        &values::heads().with_gate(true),
    );
    loads(
        "added/HeadsConfigWithNormAfterRotary",
        &values::heads().with_gate(true).with_norm_after_rotary(true),
    );
    loads(
        "added/KvCacheConfigWithSinkTokens",
        &values::kv_cache().with_sink_tokens(5),
    );
    loads(
        "added/QkNormConfigPerHead",
        &QkNormConfig::PerHead(
            NormConfig::layer_norm()
                .with_epsilon(0.125)
                .without_bias()
                .with_unit_offset(),
        ),
    );
    loads(
        "added/ExpertsConfigWithShared",
        &values::experts()
            .with_sigmoid(true)
            .with_expert_bias(true)
            .with_routed_scale(2.5)
            .with_d_shared(19)
            .with_shared_gate(true),
    );
    loads(
        "added/MixtureOfExpertsConfigWithShared",
        &values::mixture_of_experts()
            .with_sigmoid(true)
            .with_expert_bias(true)
            .with_routed_scale(2.5)
            .with_d_shared(19)
            .with_shared_gate(true),
    );
    loads(
        "added/ExpertsConfigWithRouterInF32",
        &values::experts().with_router_in_f32(true),
    );
    loads(
        "added/MixtureOfExpertsConfigWithRouterInF32",
        &values::mixture_of_experts().with_router_in_f32(true),
    );
    loads(
        "added/ExpertsConfigWithGroups",
        &ExpertsConfig::new(8, 3)
            .with_d_ff(17)
            .with_norm_topk_prob(false)
            .with_router_bias(true)
            .with_n_groups(4)
            .with_top_k_groups(2)
            .with_routed_scale(2.5)
            .with_d_shared(19)
            .with_shared_gate(true),
    );
    let mut mixture = values::mixture_of_experts()
        .with_n_groups(4)
        .with_top_k_groups(2)
        .with_routed_scale(2.5)
        .with_d_shared(19)
        .with_shared_gate(true);
    mixture.n_experts = 8;
    loads("added/MixtureOfExpertsConfigWithGroups", &mixture);
    loads(
        "added/RotaryConfigWithAxes",
        &RotaryConfig::new()
            .with_max_len(509)
            .with_base(500.0)
            .with_layout(RotaryLayout::Interleaved)
            .with_axes(RotaryAxes::Sections(vec![2, 3])),
    );
    loads("added/NormPlacement", &NormPlacement::PostSublayer);
    loads(
        "added/LayerPattern",
        &vec![
            LayerPattern::Uniform,
            LayerPattern::Cycle(vec![block(), BlockConfig::new()]),
            LayerPattern::Shared(2),
        ],
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
fn attention_with_what_was_added() {
    loads(
        "added/MultiHeadAttentionConfigWithCausal",
        &values::multi_head_attention()
            .with_causal(true)
            .with_window(7),
    );
}

#[test]
fn model_configs_of_older_files_load() {
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
    let mut saved = serde_json::to_value(values::stack()).expect("written");
    let fields = saved.as_object_mut().expect("an object");
    fields.remove("block").expect("the field");
    let error = serde_json::from_value::<TransformerStackConfig>(saved);
    let error = error.expect_err("a block is needed").to_string();
    assert!(error.starts_with("missing field `block`"), "{error}");
}
