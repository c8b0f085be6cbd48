//! What such layers cannot be, and what they refuse.

use burn::tensor::Tensor;
use burn_attn::{
    BlockConfig, KvCacheConfig, LayerPattern, QkNormConfig, SelfAttentionConfig,
    SelfAttentionInput, TransformerLayerConfig, TransformerStackConfig,
    positions::PositionEncoding,
};
use burn_attn_tests::{devices, numbers::tensor, sentence};

use super::{D_MODEL, block, stack};

#[test]
fn what_is_refused() {
    let device = devices::any();
    let own = block(&PositionEncoding::None);
    let sharing = own.clone().with_shared_key_value(true);
    let refused = |blocks: Vec<BlockConfig>| {
        let config = TransformerStackConfig::causal(D_MODEL, 19, 4, blocks.len());
        let config = config.with_pattern(LayerPattern::Cycle(blocks));
        config.validate().err().map(|error| error.to_string())
    };
    assert_eq!(
        refused(vec![own.clone(), sharing.clone(), sharing.clone()]),
        None
    );
    let sentence_of = |layer: usize, rest: &str| {
        Some(format!(
            "TransformerStackConfig: shared_key_value is true in layer {layer}, {rest}"
        ))
    };
    assert_eq!(
        refused(vec![sharing.clone(), own.clone()]),
        sentence_of(
            0,
            "but no earlier layer without a window has keys and values of its own"
        )
    );
    let near = sharing.clone().with_window(4);
    assert_eq!(
        refused(vec![own.clone(), sharing.clone(), near]),
        sentence_of(
            2,
            "but no earlier layer with a window of 4 has keys and values of its own"
        )
    );
    let rotary = PositionEncoding::rotary();
    for (other, field, [actual, expected]) in [
        (sharing.clone().with_n_kv_heads(4), "n_kv_heads", ["4", "2"]),
        (sharing.clone().with_d_head(3), "d_head", ["3", "6"]),
        (
            sharing.clone().with_d_value_head(3),
            "d_value_head",
            ["3", "6"],
        ),
        (
            sharing.clone().with_position(rotary.clone()),
            "position",
            [&*format!("{rotary:?}"), "None"],
        ),
        (
            sharing.clone().with_qk_norm(QkNormConfig::l2()),
            "qk_norm",
            ["L2", "not L2"],
        ),
    ] {
        let near = own.clone().with_window(4);
        let rest = format!(
            "whose {field} is {actual}, but {field} is {expected} in layer 1, which has the keys and values"
        );
        assert_eq!(
            refused(vec![
                near.clone(),
                own.clone(),
                near,
                sharing.clone(),
                other
            ]),
            sentence_of(4, &rest)
        );
    }
    let decoder = TransformerLayerConfig::new(D_MODEL, 19, 4)
        .with_block(sharing.clone())
        .with_d_memory(D_MODEL);
    assert_eq!(
        decoder.validate().expect_err("refused").to_string(),
        "TransformerLayerConfig: shared_key_value is true, but a layer with cross-attention has keys and values of its own"
    );

    let stack = stack(true, vec![own, sharing], &device);
    let x: Tensor<3> = tensor([1, 3, D_MODEL], 1, &device);
    let missing = "SelfAttention: a layer that shares keys and values was called without those of another layer, which a stack gives it";
    let attention = &stack.layers[1].self_attention;
    assert_eq!(sentence(|| stack.layers[1].forward(x.clone())), missing);
    assert_eq!(sentence(|| attention.forward(x.clone())), missing);
    let mut cache = attention.cache(1, &KvCacheConfig::new(9));
    let input = SelfAttentionInput::new(x.clone());
    assert_eq!(
        sentence(|| attention.forward_cached(input, &mut cache)),
        missing
    );
    assert_eq!(
        sentence(|| attention.clone().into_multi_head()),
        "SelfAttention: a layer that shares the keys and values of another has no projections of its own for them"
    );
    let other = SelfAttentionConfig::new(D_MODEL, 4).with_causal(true);
    assert_eq!(
        other.init(&device).query_key_value.weight.dims(),
        [D_MODEL, 3 * D_MODEL]
    );
    assert_eq!(attention.query_key_value.weight.dims(), [D_MODEL, D_MODEL]);
}

/// Fewer caches than layers, which are named by their place among all layers.
#[test]
fn a_cache_of_another_stack() {
    let device = devices::any();
    let own = block(&PositionEncoding::None);
    let sharing = own.clone().with_shared_key_value(true);
    let stack = |window| {
        let near = own.clone().with_window(window);
        stack(true, vec![own.clone(), sharing.clone(), near], &device)
    };
    let config = KvCacheConfig::new(9);
    let x: Tensor<3> = tensor([1, 3, D_MODEL], 1, &device);
    let mut of_three = self::stack(true, vec![own.clone(); 3], &device).cache(1, &config);
    assert_eq!(
        sentence(|| stack(4).forward_cached(x.clone(), &mut of_three)),
        "TransformerStack: a cache of 3 layers does not fit a stack with 2 layers that have keys and values of their own"
    );
    // The first layer takes the tokens before the last one refuses them.
    let mut cache = stack(4).cache(1, &config);
    sentence(|| stack(5).forward_cached(x.clone(), &mut cache));
    assert_eq!(
        sentence(|| stack(4).forward_cached(x, &mut cache)),
        "TransformerStack: the cache of layer 2 has [0] tokens, but that of layer 0 has [3]"
    );
}
