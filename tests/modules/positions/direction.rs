//! A relative bias looks where its module looks: back only in a causal one, both ways in the others.

use burn::{config::Config, tensor::Tensor};
use burn_attn::{
    AttentionBias, BlockConfig, ConfigError, MultiHeadAttentionConfig, RelativeBuckets,
    SelfAttention, SelfAttentionConfig, SelfAttentionInput, TransformerConfig, TransformerStack,
    TransformerStackConfig,
    positions::{PositionEncoding, RelativeBiasConfig},
};
use burn_attn_tests::{
    compare::{assert_close, differs},
    devices,
    numbers::{filled, tensor},
};

const D_MODEL: usize = 15;
const HEADS: usize = 3;
/// So many tokens that the directions differ: from 8 tokens back on, both ways share their buckets.
const LEN: usize = 23;

fn buckets(bidirectional: bool) -> RelativeBuckets {
    RelativeBuckets {
        buckets: 32,
        max_distance: 128,
        bidirectional,
    }
}

/// Panics unless the module computes what it does without positions, plus its table read in this direction.
#[track_caller]
fn assert_direction(what: &str, module: &SelfAttention, bidirectional: bool) {
    let x: Tensor<3> = tensor([2, LEN, D_MODEL], 1, &module.output.weight.device());
    let mut plain = module.clone();
    let relative = plain.heads.position.relative.take().expect("a table");
    let written_out = |bidirectional| {
        let bias = AttentionBias::relative(relative.table.val(), buckets(bidirectional));
        plain.forward(SelfAttentionInput::new(x.clone()).bias(bias))
    };
    let output = module.forward(SelfAttentionInput::new(x.clone()));
    let expected = written_out(bidirectional);
    assert!(differs(&expected, &written_out(!bidirectional)));
    assert_close(what, &output.into_data(), &expected.into_data(), 1e-6);
}

#[test]
fn a_causal_module_looks_back_only() {
    for (backend, device) in devices::cpu() {
        for causal in [true, false] {
            let config = SelfAttentionConfig::new(D_MODEL, HEADS)
                .with_causal(causal)
                .with_position(PositionEncoding::relative());
            assert_direction(backend, &filled(config.init(&device), 3), !causal);
        }
        // What cannot know whether it is causal looks both ways.
        let config = MultiHeadAttentionConfig::new(D_MODEL, HEADS)
            .with_position(PositionEncoding::relative());
        let module = filled(config.init(&device), 3).into_self_attention();
        assert_direction(backend, &module, true);
    }
}

/// The attention of the first layer with the table that the layers share.
fn attention(stack: &TransformerStack) -> SelfAttention {
    let mut attention = stack.layers[0].self_attention.clone();
    attention.heads.position = stack.positions[0].clone();
    attention
}

#[test]
fn each_stack_of_a_transformer_looks_its_way() {
    for (backend, device) in devices::cpu() {
        let block = || BlockConfig::new().with_position(PositionEncoding::relative());
        let causal = TransformerStackConfig::causal(D_MODEL, 29, HEADS, 1).with_block(block());
        let causal = filled(causal.init(&device), 3);
        assert_direction(backend, &attention(&causal), false);
        let both = TransformerConfig::new(D_MODEL, 29, HEADS, 1, 1).with_block(block());
        let both = filled(both.init(&device), 3);
        assert_direction(backend, &attention(&both.encoder), true);
        assert_direction(backend, &attention(&both.decoder), false);
    }
}

/// As it was written when it was a field of its own: such weights were trained with the direction it says.
#[test]
fn a_direction_that_was_saved_is_kept() {
    let saved = |bidirectional: bool| {
        format!(
            r#"{{"buckets":32,"max_distance":128,"bidirectional":{bidirectional},"initializer":"Zeros"}}"#
        )
    };
    for (backend, device) in devices::cpu() {
        for bidirectional in [true, false] {
            let relative = RelativeBiasConfig::load_binary(saved(bidirectional).as_bytes());
            let relative = relative.expect("it still loads");
            for causal in [true, false] {
                let config = SelfAttentionConfig::new(D_MODEL, HEADS)
                    .with_causal(causal)
                    .with_position(PositionEncoding::Relative(relative.clone()));
                let module = filled(config.init(&device), 3);
                assert_direction(backend, &module, bidirectional);
            }
        }
    }
}

/// 12 tokens are beyond the 8 that have buckets of their own both ways, not beyond the 16 that have them one way.
#[test]
fn a_table_is_refused_where_its_direction_does_not_fit() {
    let relative = |max_distance| {
        let config = RelativeBiasConfig::new().with_max_distance(max_distance);
        PositionEncoding::Relative(config)
    };
    let block = |max_distance| BlockConfig::new().with_position(relative(max_distance));
    let refused = |result: Result<(), ConfigError>, config: &str| {
        assert_eq!(
            result.expect_err("too near").to_string(),
            format!(
                "{config}: position: RelativeBiasConfig: the max_distance of relative buckets must be more than 16, but is 12"
            )
        );
    };
    let attention = |causal, max_distance| {
        SelfAttentionConfig::new(D_MODEL, HEADS)
            .with_causal(causal)
            .with_position(relative(max_distance))
            .validate()
    };
    assert_eq!(attention(false, 12), Ok(()));
    assert_eq!(attention(true, 17), Ok(()));
    refused(attention(true, 12), "SelfAttentionConfig");
    let encoder = TransformerStackConfig::encoder(D_MODEL, 29, HEADS, 1);
    assert_eq!(encoder.with_block(block(12)).validate(), Ok(()));
    let causal = TransformerStackConfig::causal(D_MODEL, 29, HEADS, 1);
    refused(
        causal.with_block(block(12)).validate(),
        "TransformerStackConfig",
    );
    let decoder = TransformerStackConfig::decoder(D_MODEL, 29, HEADS, 1);
    let decoder = decoder.with_block(block(12));
    assert_eq!(decoder.validate(), Ok(()));
    refused(
        decoder.with_causal(true).validate(),
        "TransformerStackConfig",
    );
    let both = TransformerConfig::new(D_MODEL, 29, HEADS, 1, 1);
    refused(
        both.clone().with_block(block(12)).validate(),
        "TransformerConfig",
    );
    assert_eq!(both.with_block(block(17)).validate(), Ok(()));
    // Few buckets are enough for one direction.
    let few = RelativeBiasConfig::new().with_buckets(3);
    let few =
        SelfAttentionConfig::new(D_MODEL, HEADS).with_position(PositionEncoding::Relative(few));
    assert_eq!(few.clone().with_causal(true).validate(), Ok(()));
    assert!(few.validate().is_err());
    let few = PositionEncoding::Relative(RelativeBiasConfig::new().with_buckets(3));
    let decoder = TransformerStackConfig::decoder(D_MODEL, 29, HEADS, 1)
        .with_block(BlockConfig::new().with_position(few));
    assert_eq!(decoder.clone().with_causal(true).validate(), Ok(()));
    assert!(decoder.validate().is_err());
}
