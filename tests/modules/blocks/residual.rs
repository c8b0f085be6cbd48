//! What a sublayer adds to its input: scaled, left out, or read without a norm.

use burn::tensor::Tensor;
#[cfg(feature = "flex")]
use burn::tensor::{DType, Device};
use burn_attn::{
    BlockConfig, LayerPattern, NormConfig, NormPlacement, SelfAttentionInput, SublayerConnection,
    TransformerLayer, TransformerLayerConfig, TransformerStackConfig,
};
use burn_attn_tests::{
    compare::{assert_close, assert_same, numbers},
    devices,
    numbers::{alone, filled, tensor},
    parameters, sentence,
};

use super::{D_FF, D_MODEL, N_HEADS, PLACEMENTS};

const TOLERANCE: f64 = 2e-6;

fn block() -> BlockConfig {
    BlockConfig::new()
        .with_dropout(0.0)
        .with_norm(NormConfig::layer_norm())
        .with_norm_placement(NormPlacement::Pre)
}

fn config(block: BlockConfig) -> TransformerLayerConfig {
    TransformerLayerConfig::new(D_MODEL, D_FF, N_HEADS).with_block(block)
}

fn think(layer: &TransformerLayer, x: Tensor<3>) -> Tensor<3> {
    layer.feed_forward.as_ref().expect("one").forward(x)
}

#[test]
fn a_layer_scale_multiplies_what_is_added() {
    for (name, device) in devices::cpu() {
        let device = device.autodiff();
        let x: Tensor<3> = tensor([2, 7, D_MODEL], 1, &device);
        for placement in PLACEMENTS {
            let block = block().with_norm_placement(placement);
            let scaled = config(block.clone().with_layer_scale(0.375)).init(&device);
            let first = scaled
                .self_attention_residual
                .scale
                .as_ref()
                .expect("a scale");
            assert!(numbers(&first.val()).iter().all(|&scale| scale == 0.375));
            let scaled = filled(scaled, 1);
            let scale = |residual: &SublayerConnection| {
                let scale = residual.scale.as_ref().expect("a scale").val();
                scale.unsqueeze::<3>()
            };
            let attention = &scaled.self_attention_residual;
            let after = scaled.feed_forward_residual.as_ref().expect("one");
            let around = |residual: &SublayerConnection, x: Tensor<3>, y: Tensor<3>| {
                let norm = residual.norm.as_ref().expect("a norm");
                match placement {
                    NormPlacement::Post => norm.forward(x + y * scale(residual)),
                    NormPlacement::PostSublayer => x + norm.forward(y) * scale(residual),
                    NormPlacement::Sandwich => {
                        let second = residual.output_norm.as_ref().expect("a norm");
                        x + second.forward(y) * scale(residual)
                    }
                    _ => x + y * scale(residual),
                }
            };
            let attended = SelfAttentionInput::new(attention.input(x.clone()));
            let attended = scaled.self_attention.forward(attended);
            let expected = around(attention, x.clone(), attended);
            let thought = think(&scaled, after.input(expected.clone()));
            let expected = around(after, expected, thought);
            let actual = scaled.forward(x.clone()).states;
            let what = format!("{name}, {placement:?}");
            assert_close(&what, &actual.to_data(), &expected.into_data(), TOLERANCE);
            let gradients = parameters::gradients(&scaled, &actual.sum().backward());
            assert!(gradients.contains_key("self_attention_residual.scale"));
        }
    }
}

/// Each sublayer of a parallel layer has a scale, and is left out by itself.
#[test]
fn branches_of_parallel_layers() {
    let _turn = alone();
    for (name, device) in devices::cpu() {
        let device = device.autodiff();
        let x: Tensor<3> = tensor([64, 3, D_MODEL], 1, &device);
        for separate in [false, true] {
            let block = block().with_parallel(true).with_separate_norms(separate);
            let layer = filled(config(block.clone().with_layer_scale(0.5)).init(&device), 1);
            let branches = |layer: &TransformerLayer| {
                let of_network = layer.feed_forward_residual.as_ref().expect("one");
                let read = layer.self_attention_residual.input(x.clone());
                let attended = SelfAttentionInput::new(read.clone());
                let attended = layer.self_attention.forward(attended);
                let read = match separate {
                    true => of_network.input(x.clone()),
                    false => read,
                };
                [attended, think(layer, read)]
            };
            let after = layer.feed_forward_residual.as_ref().expect("one");
            let [first, second] = [&layer.self_attention_residual, after]
                .map(|residual| residual.scale.as_ref().expect("a scale").val().unsqueeze());
            let [attended, thought] = branches(&layer);
            let expected = x.clone() + attended * first + thought * second;
            let actual = layer.forward(x.clone()).states;
            let what = format!("{name}, separate norms {separate}");
            assert_close(&what, &actual.to_data(), &expected.into_data(), TOLERANCE);
            let gradients = parameters::gradients(&layer, &actual.sum().backward());
            assert!(gradients.contains_key("feed_forward_residual.scale"));

            let dropping = filled(config(block.with_stochastic_depth(0.5)).init(&device), 1);
            burn_attn::seed(&device, 7);
            let added = numbers(&(dropping.forward(x.clone()).states - x.clone()));
            let [attended, thought] = branches(&dropping).map(|branch| numbers(&branch));
            let width = 3 * D_MODEL;
            let kinds = (0..64).map(|item| {
                let kind = |with: [f32; 2]| {
                    let mut elements = item * width..(item + 1) * width;
                    elements.all(|at| {
                        let expected = with[0] * attended[at] + with[1] * thought[at];
                        (added[at] - 2.0 * expected).abs() < 1e-4
                    })
                };
                let kinds = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]].map(kind);
                kinds.iter().position(|kind| *kind).expect("one of four")
            });
            let kinds: Vec<usize> = kinds.collect();
            for kind in 0..4 {
                let count = kinds.iter().filter(|other| **other == kind).count();
                assert!((6..=28).contains(&count), "{what}: {count} of kind {kind}");
            }
        }
    }
}

#[test]
fn stochastic_depth_leaves_out_whole_sequences() {
    const BATCH: usize = 64;
    let _turn = alone();
    let mut seen: Vec<Vec<bool>> = Vec::new();
    for (_, device) in devices::cpu() {
        let device = device.autodiff();
        let layer = config(block().with_stochastic_depth(0.25));
        let layer = filled(layer.init(&device), 1);
        let x: Tensor<3> = tensor([BATCH, 3, D_MODEL], 1, &device);
        let run = || {
            burn_attn::seed(&device, 7);
            let residual = &layer.self_attention_residual;
            residual.sum(x.clone(), Tensor::ones_like(&x)) - x.clone()
        };
        let added = run();
        assert_same(&added, &run());
        let added = numbers(&added);
        let kept = added.chunks(3 * D_MODEL).map(|of_sequence| {
            let kept = of_sequence[0] != 0.0;
            let expected = if kept { 1.0 / 0.75 } else { 0.0 };
            assert!(of_sequence.iter().all(|&x| (x - expected).abs() < 1e-6));
            kept
        });
        let kept: Vec<bool> = kept.collect();
        let count = kept.iter().filter(|kept| **kept).count();
        assert!((38..=58).contains(&count), "{count} of {BATCH}");
        seen.push(kept);
        // In inference, nothing is left out.
        let plain = filled(config(block()).init(&device.clone().inner()), 1);
        let inner = config(block().with_stochastic_depth(0.25));
        let inner = filled(inner.init(&device.inner()), 1);
        let x = x.inner();
        assert_same(&inner.forward(x.clone()).states, &plain.forward(x).states);
    }
    assert!(seen.windows(2).all(|pair| pair[0] == pair[1]));
}

/// bf16 rounds the factor of what is not left out, `1 / 0.9`, to 1.109, and a scale of 0.3 to 0.3008.
#[cfg(feature = "flex")]
#[test]
fn half_precision_is_scaled_in_f32() {
    let _turn = alone();
    let device = Device::flex().autodiff();
    let residual = |block: BlockConfig| config(block).init(&device).self_attention_residual;
    let y = tensor::<3>([64, 3, D_MODEL], 2, &device).cast(DType::BF16);
    let sum = |residual: &SublayerConnection| numbers(&residual.sum(y.zeros_like(), y.clone()));
    let product = |factor: f64| {
        let wide = y.clone().cast(DType::F32) * factor;
        numbers(&wide.cast(DType::BF16))
    };
    let sums = sum(&residual(block().with_layer_scale(0.3)));
    assert_eq!(sums, product(0.3));

    let sums = sum(&residual(block().with_stochastic_depth(0.1)));
    let products = product(1.0 / 0.9);
    let kept = sums.iter().zip(&products).filter(|(sum, _)| **sum != 0.0);
    let kept: Vec<_> = kept.collect();
    assert!(kept.len() > sums.len() / 2);
    assert!(kept.iter().all(|(sum, product)| sum == product));
}

#[test]
fn a_first_layer_without_a_norm() {
    let device = devices::any();
    let x: Tensor<3> = tensor([2, 7, D_MODEL], 1, &device);
    let layer = filled(config(block().with_attention_norm(false)).init(&device), 1);
    assert!(layer.self_attention_residual.norm.is_none());
    let attended = layer.self_attention.forward(x.clone());
    let after = layer.feed_forward_residual.as_ref().expect("one");
    let sum = x.clone() + attended;
    let expected = sum.clone() + think(&layer, after.input(sum));
    assert_same(&layer.forward(x).states, &expected);
    for placement in PLACEMENTS
        .into_iter()
        .filter(|it| *it != NormPlacement::Pre)
    {
        let bad = config(
            block()
                .with_attention_norm(false)
                .with_norm_placement(placement),
        );
        assert_eq!(
            bad.validate().expect_err("bad").to_string(),
            format!(
                "TransformerLayerConfig: attention_norm false is for norm_placement Pre without parallel, but parallel is false and \
                 norm_placement {placement:?}"
            )
        );
    }
}

#[test]
fn layers_of_different_widths_inside() {
    let device = devices::any();
    let blocks = [None, Some(11), Some(37)].map(|d_ff| block().with_d_ff(d_ff));
    let config = TransformerStackConfig::encoder(D_MODEL, D_FF, N_HEADS, 3);
    let stack = config
        .with_pattern(LayerPattern::Cycle(blocks.into()))
        .init(&device);
    let widths = stack.layers.iter().map(|layer| {
        let network = layer.feed_forward.as_ref().expect("one");
        network.linear_inner.weight.dims()[1]
    });
    assert_eq!(widths.collect::<Vec<_>>(), [D_FF, 11, 37]);
}

#[test]
fn residuals_that_cannot_be() {
    for (block, reason) in [
        (
            block().with_layer_scale(0.0),
            "layer_scale must be positive and finite, got 0",
        ),
        (
            block().with_stochastic_depth(1.0),
            "stochastic_depth must be in [0, 1), got 1",
        ),
        (block().with_d_ff(0), "d_ff must be at least 1, got 0"),
        (
            block()
                .with_parallel(true)
                .with_norm_placement(NormPlacement::Post)
                .with_layer_scale(0.5),
            "layer_scale and stochastic_depth are for one sublayer at a time, but parallel layers with norm_placement Post add the sum of two",
        ),
        (
            block()
                .with_parallel(true)
                .with_norm_placement(NormPlacement::Post)
                .with_dropout(0.1)
                .with_feed_forward_residual_dropout(0.0),
            "feed_forward_residual_dropout 0 differs from dropout 0.1, but parallel layers with norm_placement Post drop from the sum of two",
        ),
    ] {
        let error = config(block).validate().expect_err("bad").to_string();
        assert_eq!(error, format!("TransformerLayerConfig: {reason}"));
    }
    let device = devices::any();
    for (block, reason) in [
        (
            block().with_layer_scale(f64::NAN),
            "layer_scale must be positive and finite, got NaN",
        ),
        (
            block().with_stochastic_depth(1.0),
            "stochastic_depth must be in [0, 1), got 1",
        ),
    ] {
        assert_eq!(
            sentence(|| block.residual(D_MODEL, &device)),
            format!("BlockConfig: {reason}")
        );
    }
}
