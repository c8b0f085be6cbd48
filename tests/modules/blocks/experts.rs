//! Layers whose feed-forward network is a mixture of experts.

use burn::tensor::{Device, Tensor};
use burn_attn::{
    AttentionMask, BlockConfig, ExpertsConfig, FeedForwardActivation, KvCacheConfig, LayerInput,
    LayerPattern, NormPlacement, Transformer, TransformerConfig, TransformerInput,
    TransformerLayer, TransformerLayerConfig, TransformerStack, TransformerStackConfig,
    load_balancing_loss,
};
use burn_attn_tests::{
    compare::{assert_close, assert_same},
    devices,
    numbers::{filled, tensor},
    parameters, sentence,
};

use super::{D_FF, D_MODEL, N_HEADS, PLACEMENTS, by_hand};

const TOLERANCE: f64 = 5e-6;
const N_EXPERTS: usize = 7;

fn dense() -> BlockConfig {
    BlockConfig::new()
        .with_dropout(0.0)
        .with_norm_placement(NormPlacement::Pre)
        .with_activation(FeedForwardActivation::SwiGlu)
}

fn sparse() -> BlockConfig {
    dense().with_experts(ExpertsConfig::new(N_EXPERTS, 3).with_d_ff(17))
}

fn layer(block: BlockConfig, device: &Device) -> TransformerLayer {
    let config = TransformerLayerConfig::new(D_MODEL, D_FF, N_HEADS).with_block(block);
    filled(config.init(device), 1)
}

/// Five layers, of which the second and the fourth have experts.
fn mixed(device: &Device) -> TransformerStack {
    let config = TransformerStackConfig::causal(D_MODEL, D_FF, N_HEADS, 5)
        .with_pattern(LayerPattern::Cycle(vec![dense(), sparse()]));
    filled(config.init(device), 1)
}

#[test]
fn a_layer_with_experts_is_its_formula() {
    for (name, device) in devices::cpu() {
        for placement in PLACEMENTS {
            for (parallel, separate_norms) in [(false, false), (true, false), (true, true)] {
                if separate_norms && placement != NormPlacement::Pre {
                    continue;
                }
                let block = sparse()
                    .with_norm_placement(placement)
                    .with_parallel(parallel)
                    .with_separate_norms(separate_norms);
                let layer = layer(block.clone(), &device);
                let x = tensor([2, 7, D_MODEL], 2, &device);
                let expected = by_hand::layer(&block, &layer, x.clone());
                let output = layer.forward(x);
                let (actual, expected) = (output.states.into_data(), expected.into_data());
                assert_close(&format!("{block} on {name}"), &actual, &expected, TOLERANCE);
                let logits = output.router_logits.expect("there is a router");
                assert_eq!(logits.dims(), [14, N_EXPERTS]);
            }
        }
    }
}

/// One expert that every position uses is the network that a layer without experts has.
#[test]
fn one_expert_is_no_choice() {
    for (name, device) in devices::cpu() {
        let one = dense().with_experts(ExpertsConfig::new(1, 1));
        let (plain, mut one) = (layer(dense(), &device), layer(one, &device));
        let experts = one.mixture_of_experts.as_mut().expect("experts");
        experts.experts = plain.feed_forward.clone().into_iter().collect();
        one.self_attention = plain.self_attention.clone();
        one.self_attention_residual = plain.self_attention_residual.clone();
        one.feed_forward_residual = plain.feed_forward_residual.clone();
        let x: Tensor<3> = tensor([2, 7, D_MODEL], 2, &device);
        let expected = plain.forward(x.clone());
        assert!(expected.router_logits.is_none());
        let actual = one.forward(x).states.into_data();
        assert_close(name, &actual, &expected.states.into_data(), TOLERANCE);
    }
}

#[test]
fn experts_are_built_like_the_block() {
    let device = devices::any();
    let names = |block| -> Vec<(String, Vec<usize>)> {
        let values = parameters::values(&layer(block, &device)).into_iter();
        let others = values.filter(|(path, _)| {
            !path.starts_with("self_attention") && !path.starts_with("feed_forward_residual")
        });
        others
            .map(|(path, data)| (path, data.shape().to_vec()))
            .collect()
    };
    let one = |experts: ExpertsConfig| {
        let block = dense().with_bias(false).with_experts(experts);
        names(block)
    };
    let path = |name: &str| format!("mixture_of_experts.{name}");
    assert_eq!(
        one(ExpertsConfig::new(1, 1).with_router_bias(true)),
        [
            (
                path("experts.0.linear_inner.weight"),
                vec![D_MODEL, 2 * D_FF]
            ),
            (path("experts.0.linear_outer.weight"), vec![D_FF, D_MODEL]),
            (path("router.bias"), vec![1]),
            (path("router.weight"), vec![D_MODEL, 1]),
        ]
    );
    let inner = &one(ExpertsConfig::new(1, 1).with_d_ff(3))[0];
    assert_eq!(inner.1, [D_MODEL, 6]);
    // As they were before layers could have experts.
    let names: Vec<String> = names(dense()).into_iter().map(|(path, _)| path).collect();
    assert_eq!(
        names,
        [
            "feed_forward.linear_inner.bias",
            "feed_forward.linear_inner.weight",
            "feed_forward.linear_outer.bias",
            "feed_forward.linear_outer.weight",
        ]
    );
}

#[test]
fn a_stack_returns_the_logits_of_its_routers() {
    for (_, device) in devices::cpu() {
        let stack = mixed(&device);
        let x: Tensor<3> = tensor([2, 5, D_MODEL], 2, &device);
        let input = || LayerInput::new(x.clone());
        let output = stack.forward_with_router_logits(input());
        assert_same(&output.states, &stack.forward(input()));
        let traced = stack.forward_with_hidden_states(input());
        assert_eq!(output.router_logits.len(), 2);
        for (layer, logits) in [1, 3].into_iter().zip(&output.router_logits) {
            let module = &stack.layers[layer];
            let before = traced.hidden_states[layer - 1].clone();
            let attended = module.self_attention_residual.input(before.clone());
            let attended = module
                .self_attention
                .forward(burn_attn::SelfAttentionInput::new(attended));
            let x = module.self_attention_residual.sum(before, attended);
            let residual = module.feed_forward_residual.as_ref().expect("one");
            let experts = module.mixture_of_experts.as_ref().expect("experts");
            let expected = experts
                .router
                .forward(residual.input(x))
                .reshape([10, N_EXPERTS]);
            let (actual, expected) = (logits.to_data(), expected.into_data());
            assert_close(&format!("layer {layer}"), &actual, &expected, TOLERANCE);
        }
        for others in [traced, stack.forward_with_weights(input())] {
            assert_eq!(others.router_logits.len(), 2);
        }
    }
}

/// Both stacks, as if each was called on its own.
#[test]
fn an_encoder_decoder_returns_the_logits_of_its_routers() {
    for (_, device) in devices::cpu() {
        let config = TransformerConfig::new(D_MODEL, D_FF, N_HEADS, 2, 3).with_block(sparse());
        let transformer: Transformer = filled(config.init(&device), 1);
        let source: Tensor<3> = tensor([2, 7, D_MODEL], 2, &device);
        let target: Tensor<3> = tensor([2, 5, D_MODEL], 3, &device);
        let lengths = || AttentionMask::key_lengths(Tensor::from_data([7, 4], &device));
        let input = || TransformerInput::new(source.clone(), target.clone()).source_mask(lengths());
        let encoder = &transformer.encoder;
        let encoded =
            encoder.forward_with_router_logits(LayerInput::new(source.clone()).mask(lengths()));
        let memory = LayerInput::new(target.clone()).memory(encoded.states);
        let decoder = &transformer.decoder;
        let decoded = decoder.forward_with_router_logits(memory.memory_mask(lengths()));
        let output = transformer.forward_with_router_logits(input());
        assert_same(&output.states, &transformer.forward(input()));
        assert!(output.encoder_weights.is_empty() && output.cross_weights.is_empty());
        let with_weights = transformer.forward_with_weights(input());
        assert_eq!(with_weights.encoder_weights.len(), 2);
        for output in [output, with_weights] {
            let both = [
                (output.encoder_router_logits, &encoded.router_logits, 2, 14),
                (output.decoder_router_logits, &decoded.router_logits, 3, 10),
            ];
            for (actual, expected, layers, positions) in both {
                assert_eq!((actual.len(), expected.len()), (layers, layers));
                for (actual, expected) in actual.iter().zip(expected) {
                    assert_eq!(actual.dims(), [positions, N_EXPERTS]);
                    assert_same(actual, expected);
                }
            }
        }
    }
}

/// What the loss adds to a trainer's: it teaches every router, and what stands before it.
#[test]
fn the_loss_teaches_every_router() {
    let device = devices::any().autodiff();
    let stack = mixed(&device);
    let x: Tensor<3> = tensor([2, 5, D_MODEL], 2, &device);
    let output = stack.forward_with_router_logits(LayerInput::new(x));
    let loss = load_balancing_loss(&output.router_logits, 3, None);
    let gradients = parameters::gradients(&stack, &loss.backward());
    let learns = |path: &str| {
        let gradient = gradients.get(path);
        gradient.is_some_and(|data| data.iter::<f32>().any(|x| x != 0.0))
    };
    assert!(learns("layers.1.mixture_of_experts.router.weight"));
    assert!(learns("layers.3.mixture_of_experts.router.weight"));
    assert!(learns("layers.0.feed_forward.linear_outer.weight"));
    assert!(!learns("layers.4.feed_forward.linear_outer.weight"));
}

#[test]
fn layers_with_experts_decode() {
    for (name, device) in devices::cpu() {
        let stack = mixed(&device);
        let x: Tensor<3> = tensor([2, 9, D_MODEL], 2, &device);
        let whole = stack.forward(LayerInput::new(x.clone()));
        let mut cache = stack.cache(2, &KvCacheConfig::new(9));
        for (from, len) in [(0, 6), (6, 1), (7, 2)] {
            let piece = x.clone().narrow(1, from, len);
            let states = stack.forward_cached(piece, &mut cache);
            let expected = whole.clone().narrow(1, from, len);
            assert_close(name, &states.into_data(), &expected.into_data(), TOLERANCE);
        }
    }
}

#[test]
fn bad_experts_have_their_sentence() {
    let cases = [
        (ExpertsConfig::new(7, 8), "top_k 8 is more than n_experts 7"),
        (
            ExpertsConfig::new(0, 1),
            "n_experts must be at least 1, got 0",
        ),
        (
            ExpertsConfig::new(7, 3).with_d_ff(0),
            "experts.d_ff must be at least 1, got 0",
        ),
        (
            ExpertsConfig::new(7, 3).with_d_shared(0),
            "d_shared must be at least 1, got 0",
        ),
        (
            ExpertsConfig::new(7, 3).with_shared_gate(true),
            "shared_gate is true, but d_shared is not set: there is no shared network",
        ),
        (
            ExpertsConfig::new(7, 3).with_routed_scale(0.0),
            "routed_scale must be positive and finite, got 0",
        ),
    ];
    for (experts, expected) in cases {
        let block = dense().with_experts(experts);
        let config = TransformerLayerConfig::new(D_MODEL, D_FF, N_HEADS).with_block(block.clone());
        let expected_here = format!("TransformerLayerConfig: {expected}");
        assert_eq!(sentence(|| config.init(&devices::any())), expected_here);
        let pattern = LayerPattern::Cycle(vec![dense(), block]);
        let config =
            TransformerStackConfig::causal(D_MODEL, D_FF, N_HEADS, 2).with_pattern(pattern);
        let error = config.validate().expect_err("it is bad").to_string();
        assert_eq!(error, format!("TransformerStackConfig: {expected}"));
    }
}
