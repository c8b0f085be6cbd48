//! What a block says of its attentions alone.

use burn::tensor::Tensor;
use burn_attn::{
    BlockConfig, ProjectionBias, SelfAttentionInput, TransformerLayer, TransformerStackConfig,
};
use burn_attn_tests::{
    compare::{assert_same, differs},
    devices,
    numbers::{alone, filled, tensor},
    parameters,
};

use super::{D_FF, D_MODEL, N_HEADS};

fn layer(block: BlockConfig) -> TransformerLayer {
    let config = TransformerStackConfig::decoder(D_MODEL, D_FF, N_HEADS, 1).with_block(block);
    config.init(&devices::any()).layers.remove(0)
}

/// The parameters that are biases of linear layers.
fn biases(layer: &TransformerLayer) -> Vec<String> {
    let paths = parameters::values(layer).into_keys();
    paths.filter(|path| path.ends_with(".bias")).collect()
}

#[test]
fn projections_may_have_other_biases_than_the_feed_forward() {
    let qwen = ProjectionBias::all().with_output(false);
    let block = || BlockConfig::new().with_projection_bias(qwen);
    let attentions = [
        "cross_attention.key_value.bias",
        "cross_attention.query.bias",
        "self_attention.query_key_value.bias",
    ];
    assert_eq!(biases(&layer(block().with_bias(false))), attentions);

    let feed_forward = [
        "feed_forward.linear_inner.bias",
        "feed_forward.linear_outer.bias",
    ];
    let all = [&attentions[..2], &feed_forward, &attentions[2..]].concat();
    assert_eq!(biases(&layer(block())), all);
    let none = BlockConfig::new().with_projection_bias(ProjectionBias::none());
    assert_eq!(biases(&layer(none)), feed_forward);
}

#[test]
fn attention_weights_may_have_a_dropout_of_their_own() {
    let _alone = alone();
    for (_, device) in devices::cpu() {
        let device = device.autodiff();
        let x: Tensor<3> = tensor([2, 7, D_MODEL], 1, &device);
        let attended = |dropout, of_attention| {
            let block = BlockConfig::new()
                .with_dropout(dropout)
                .with_attention_dropout(of_attention);
            let stack = TransformerStackConfig::causal(D_MODEL, D_FF, N_HEADS, 1).with_block(block);
            let stack = filled(stack.init(&device), 1);
            stack.layers[0]
                .self_attention
                .forward(SelfAttentionInput::new(x.clone()))
        };
        let whole = attended(0.0, None);
        assert_same(&attended(0.5, Some(0.0)), &whole);
        assert!(differs(&attended(0.5, None), &whole));
        assert!(differs(&attended(0.0, Some(0.5)), &whole));
    }
}

#[test]
fn attentions_that_cannot_be_built() {
    let bias = ProjectionBias::all().with_key(false);
    for (block, reason) in [
        (
            BlockConfig::new().with_attention_dropout(1.5),
            "attention_dropout must be in [0, 1), got 1.5",
        ),
        (
            BlockConfig::new().with_feed_forward_dropout(-0.5),
            "feed_forward_dropout must be in [0, 1), got -0.5",
        ),
        (
            BlockConfig::new().with_feed_forward_residual_dropout(1.0),
            "feed_forward_residual_dropout must be in [0, 1), got 1",
        ),
        (
            BlockConfig::new().with_projection_bias(bias),
            "projections that share one linear layer must all have a bias or all have none, got query true, key false, value true",
        ),
    ] {
        for stack in [
            TransformerStackConfig::causal(D_MODEL, D_FF, N_HEADS, 1),
            TransformerStackConfig::decoder(D_MODEL, D_FF, N_HEADS, 1),
        ] {
            let error = stack.with_block(block.clone()).validate();
            let error = error.expect_err("the block is bad").to_string();
            assert_eq!(error, format!("TransformerStackConfig: {reason}"));
        }
    }
}
