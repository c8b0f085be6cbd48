//! Layers that attend to the keys and values of an earlier layer.

use burn::tensor::{Device, Tensor};
use burn_attn::{
    AttentionMask, BlockConfig, KvCacheConfig, LayerInput, LayerPattern, MultiHeadAttention,
    MultiHeadAttentionInput, NormPlacement, QkNormConfig, SelfAttentionConfig, SelfAttentionInput,
    TransformerLayerConfig, TransformerStack, TransformerStackConfig, positions::PositionEncoding,
};
use burn_attn_tests::{
    compare::assert_close,
    devices,
    numbers::{filled, tensor},
    parameters, sentence,
};

const D_MODEL: usize = 24;
const LEN: usize = 11;
const TOLERANCE: f64 = 5e-6;

fn encodings() -> [(&'static str, PositionEncoding); 4] {
    [
        ("none", PositionEncoding::None),
        ("rotary", PositionEncoding::rotary()),
        ("ALiBi", PositionEncoding::alibi()),
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

/// Windows in turn, each with keys of its own once.
fn alternating(encoding: &PositionEncoding, device: &Device) -> TransformerStack {
    let far = block(encoding);
    let near = far.clone().with_window(3);
    let sharing = |block: &BlockConfig| block.clone().with_shared_key_value(true);
    let last = [sharing(&near), sharing(&far), sharing(&near)];
    stack(true, [near, far].into_iter().chain(last).collect(), device)
}

#[test]
fn any_pieces_give_the_whole() {
    for (backend, device) in devices::cpu() {
        let x: Tensor<3> = tensor([2, LEN, D_MODEL], 1, &device);
        for (name, encoding) in encodings() {
            let stack = alternating(&encoding, &device);
            let expected = stack.forward(x.clone()).into_data();
            for pieces in [vec![LEN], vec![1; LEN], vec![4, 1, 1, 3, 2]] {
                let what = format!("{backend}, {name}, {pieces:?}");
                let mut cache = stack.cache(2, &KvCacheConfig::new(LEN).with_initial_capacity(2));
                assert_eq!(cache.layers().len(), 2, "{what}");
                let mut first = 0;
                let outputs = pieces.iter().map(|&len| {
                    let piece = x.clone().narrow(1, first, len);
                    first += len;
                    stack.forward_cached(piece, &mut cache)
                });
                let actual = Tensor::cat(outputs.collect(), 1).into_data();
                assert_close(&what, &actual, &expected, TOLERANCE);
            }
        }
    }
}

/// Sequences of different lengths, masks, positions, drafts that are taken back, and one prompt for several sequences.
#[test]
fn caches_change_as_they_do_without() {
    let device = devices::any();
    let x: Tensor<3> = tensor([3, LEN, D_MODEL], 1, &device);
    let alone =
        |b: usize, first: usize, len: usize| x.clone().narrow(0, b, 1).narrow(1, first, len);
    for (name, encoding) in encodings() {
        let stack = alternating(&encoding, &device);
        let last = |tokens: Tensor<3>| {
            let [_, len, _] = tokens.dims();
            stack.forward(tokens).narrow(1, len - 1, 1).into_data()
        };
        let config = KvCacheConfig::new(2 * LEN).with_initial_capacity(2);
        let mut cache = stack.cache(2, &config);
        let prompts = LayerInput::new(x.clone().narrow(0, 0, 2).narrow(1, 0, 6)).lengths(&[6, 2]);
        stack.forward_cached(prompts, &mut cache);
        cache.reserve(3);
        stack.forward_cached(tensor::<3>([2, 3, D_MODEL], 7, &device), &mut cache);
        cache.truncate(&[6, 2]);
        let next = Tensor::cat(vec![alone(0, 6, 1), alone(1, 2, 1)], 0);
        let actual = stack.forward_cached(next, &mut cache);
        for (b, len) in [(0, 7), (1, 3)] {
            let actual = actual.clone().narrow(0, b, 1).into_data();
            assert_close(name, &actual, &last(alone(b, 0, len)), TOLERANCE);
        }
        // A mask that hides what the cache does not hold.
        let mut masked = cache.clone();
        let hidden = Tensor::<4>::zeros([2, 1, 1, 8], &device).bool();
        let token = || LayerInput::new(x.clone().narrow(0, 0, 2).narrow(1, 7, 1));
        let with_mask = token().mask(AttentionMask::masked(hidden));
        let actual = stack.forward_cached(with_mask, &mut masked).into_data();
        let expected = stack.forward_cached(token(), &mut cache).into_data();
        assert_close(name, &actual, &expected, TOLERANCE);

        let mut shared = stack.cache(1, &config);
        stack.forward_cached(alone(2, 0, 5), &mut shared);
        shared.fork(2);
        let next = Tensor::cat(vec![alone(0, 5, 1), alone(1, 5, 1)], 0);
        let actual = stack.forward_cached(next, &mut shared);
        for b in 0..2 {
            let actual = actual.clone().narrow(0, b, 1).into_data();
            let tokens = Tensor::cat(vec![alone(2, 0, 5), alone(b, 5, 1)], 1);
            assert_close(name, &actual, &last(tokens), TOLERANCE);
        }
    }
}

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
