//! Layers that attend to the keys and values of an earlier layer.

mod cached;
mod refused;

use burn::tensor::{Device, Tensor};
use burn_attn::{
    BlockConfig, LayerInput, LayerPattern, MultiHeadAttention, MultiHeadAttentionInput,
    NormPlacement, QkNormConfig, TransformerStack, TransformerStackConfig,
    positions::{AlibiConfig, PositionEncoding},
};
use burn_attn_tests::{
    compare::{assert_close, differs},
    devices,
    numbers::{filled, tensor},
    parameters,
};

const D_MODEL: usize = 24;
const LEN: usize = 11;
const TOLERANCE: f64 = 5e-6;

fn encodings() -> [(&'static str, PositionEncoding); 5] {
    [
        ("none", PositionEncoding::None),
        ("rotary", PositionEncoding::rotary()),
        ("ALiBi", PositionEncoding::alibi()),
        (
            "learned ALiBi",
            PositionEncoding::Alibi(AlibiConfig::new().with_learnable(true)),
        ),
        ("relative", PositionEncoding::relative()),
    ]
}

fn block(encoding: &PositionEncoding) -> BlockConfig {
    BlockConfig::new()
        .with_dropout(0.0)
        .with_norm_placement(NormPlacement::Pre)
        .with_n_kv_heads(2)
        .with_sinks(true)
        .with_qk_norm(QkNormConfig::rms())
        .with_position(encoding.clone())
}

/// One layer for each block.
fn stack(causal: bool, blocks: Vec<BlockConfig>, device: &Device) -> TransformerStack {
    let config = TransformerStackConfig::encoder(D_MODEL, 19, 4, blocks.len())
        .with_causal(causal)
        .with_pattern(LayerPattern::Cycle(blocks));
    filled(config.init(device), 3)
}

/// Two layers, of which the second has no keys and values: by the modules of its layers. Its attention has copies of the projections.
fn by_hand(stack: &TransformerStack, x: Tensor<3>) -> (Tensor<3>, MultiHeadAttention) {
    let [first, second] = stack.layers.as_slice() else {
        panic!("two layers")
    };
    let norm = |layer: &burn_attn::TransformerLayer, x: &Tensor<3>| {
        let residual = &layer.self_attention_residual;
        residual.norm.as_ref().expect("a norm").forward(x.clone())
    };
    let memory = norm(first, &x);
    let mut input = LayerInput::new(x);
    if let Some(position) = stack.position(0) {
        input = input.position(position.clone());
    }
    let x = first.forward(input).states;
    let mut attention = first.self_attention.clone().into_multi_head();
    attention.query = second.self_attention.query_key_value.clone();
    attention.output = second.self_attention.output.clone();
    let norm_of_keys = attention.heads.qk_norm.take().expect("a norm").key;
    attention.heads = second.self_attention.heads.clone();
    let qk_norm = attention.heads.qk_norm.as_mut().expect("a norm");
    assert!(qk_norm.key.is_none(), "the keys are normalised already");
    qk_norm.key = norm_of_keys;
    let mut input = MultiHeadAttentionInput::new(norm(second, &x), memory.clone(), memory);
    if let Some(position) = stack.position(1) {
        input = input.position(position.clone());
    }
    let x = x + attention.forward(input);
    let residual = second.feed_forward_residual.as_ref().expect("a sum");
    let normalised = residual.norm.as_ref().expect("a norm").forward(x.clone());
    let x = x + second
        .feed_forward
        .as_ref()
        .expect("a network")
        .forward(normalised);
    let output = stack.norm.as_ref().expect("a norm").forward(x);
    (output, attention)
}

#[test]
fn they_are_those_of_the_earlier_layer() {
    for (backend, device) in devices::cpu() {
        let device = &device.autodiff();
        for (name, encoding) in encodings() {
            for (causal, window) in [
                (true, None),
                (true, Some(3)),
                (false, None),
                (false, Some(2)),
            ] {
                let what = format!("{backend}, {name}, causal {causal}, window {window:?}");
                let block = block(&encoding).with_window(window);
                let sharing = block.clone().with_shared_key_value(true);
                let stack = stack(causal, vec![block, sharing], device);
                let x: Tensor<3> = tensor([2, LEN, D_MODEL], 1, device);
                let weights: Tensor<3> = tensor([2, LEN, D_MODEL], 2, device);
                let actual = stack.forward(x.clone());
                let (expected, attention) = by_hand(&stack, x);
                let outputs = [&actual, &expected].map(Tensor::to_data);
                assert_close(&what, &outputs[0], &outputs[1], TOLERANCE);
                let [actual, expected] =
                    [actual, expected].map(|output| (output * weights.clone()).sum().backward());
                // What the copies of the projections receive belongs to those of the first layer.
                let copies = [&attention.key.weight, &attention.value.weight];
                let copies = copies.map(|copy| copy.grad(&expected).expect("a gradient"));
                let query = Tensor::zeros([D_MODEL, D_MODEL], &copies[0].device());
                let [key, value] = copies;
                let added = Tensor::<2>::cat(vec![query, key, value], 1);
                let weight = &stack.layers[0].self_attention.query_key_value.weight;
                let projections = weight.grad(&expected).expect("a gradient") + added;
                let actual = parameters::gradients(&stack, &actual);
                let expected = parameters::gradients(&stack, &expected);
                assert_eq!(actual.len(), expected.len(), "{what}");
                for (path, gradient) in &actual {
                    let what = format!("{what}, {path}");
                    let expected = match path.as_str() {
                        "layers.0.self_attention.query_key_value.weight" => &projections.to_data(),
                        "layers.0.self_attention.query_key_value.bias" => continue,
                        _ => &expected[path],
                    };
                    assert_close(&what, gradient, expected, 1e-4);
                }
            }
        }
    }
}

#[test]
fn they_are_those_of_the_nearest_layer_with_the_same_window() {
    let device = devices::any();
    let x: Tensor<3> = tensor([2, LEN, D_MODEL], 1, &device);
    let far = block(&PositionEncoding::rotary());
    let near = far.clone().with_window(3);
    for (second, read) in [(&far, 0), (&near, 1)] {
        let sharing = near.clone().with_shared_key_value(true);
        let blocks = vec![near.clone(), second.clone(), sharing];
        let mut stack = stack(true, blocks, &device);
        // What the first two layers attend to shows only in the third.
        for layer in &mut stack.layers[..2] {
            let output = &mut layer.self_attention.output;
            output.weight = output.weight.clone().map(|weight| weight.zeros_like());
        }
        let expected = stack.forward(x.clone());
        for index in 0..2 {
            let mut changed = stack.clone();
            let projection = &mut changed.layers[index].self_attention.query_key_value;
            projection.weight = projection.weight.clone().map(|weight| weight * 2);
            let actual = changed.forward(x.clone());
            assert_eq!(differs(&actual, &expected), index == read);
        }
    }
}
