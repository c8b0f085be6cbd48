//! The feed-forward network on its own.

use burn::{
    nn::Initializer,
    tensor::{DType, Device, Tensor, TensorData},
};
use burn_attn::{
    BlockConfig, ExpertsConfig, FeedForward, FeedForwardActivation, FeedForwardConfig,
    TransformerLayerConfig,
};
use burn_attn_tests::{
    compare::{assert_close, assert_same, differs, numbers},
    devices,
    numbers::{alone, filled, tensor},
    parameters,
};

use super::{ACTIVATIONS, D_FF, D_MODEL, N_HEADS, by_hand};

fn network(activation: FeedForwardActivation, dropout: f64, device: &Device) -> FeedForward {
    let config = FeedForwardConfig::new(D_MODEL, D_FF)
        .with_activation(activation)
        .with_dropout(dropout);
    filled(config.init(device), 1)
}

#[test]
fn networks_are_their_formulas_in_any_rank() {
    for (name, device) in devices::cpu() {
        for activation in ACTIVATIONS {
            let module = network(activation, 0.0, &device);
            let x: Tensor<3> = tensor([2, 7, D_MODEL], 3, &device);
            let expected = by_hand::feed_forward(activation, &module, x.clone()).to_data();
            let actual = module.forward(x.clone());
            assert_close(name, &actual.to_data(), &expected, 1e-6);
            let rows = module.forward(x.reshape([14, D_MODEL]));
            let rows = rows.reshape([2, 7, D_MODEL]);
            assert_close(name, &rows.to_data(), &expected, 1e-6);
        }
    }
}

/// What a network of width 1 makes of some gates and what they are multiplied by, and the gradients of the sum by both, in f64.
fn function(
    activation: FeedForwardActivation,
    gate: &[f64],
    up: &[f64],
    device: &Device,
) -> [TensorData; 3] {
    let config = FeedForwardConfig::new(2, 1).with_activation(activation);
    let config = config.with_bias(false).with_dropout(0.0);
    let module = parameters::replace(config.init(device), |path, shape| match (path, shape[1]) {
        ("linear_inner.weight", 1) => vec![1.0, 0.0],
        ("linear_inner.weight", 2) => vec![1.0, 0.0, 0.0, 1.0],
        ("linear_outer.weight", 2) => vec![1.0, 0.0],
        other => panic!("{other:?}"),
    });
    let module = parameters::wide(module);
    let column = |numbers: &[f64]| {
        let data = TensorData::new(numbers.to_vec(), [numbers.len(), 1]);
        Tensor::<2>::from_data(data, (device, DType::F64)).require_grad()
    };
    let (gate, up) = (column(gate), column(up));
    let output = module.forward(Tensor::cat(vec![gate.clone(), up.clone()], 1));
    let output = output.narrow(1, 0, 1);
    let gradients = output.clone().sum().backward();
    let of = |x: &Tensor<2>| x.grad(&gradients).expect("a gradient").into_data();
    [output.into_data(), of(&gate), of(&up)]
}

const GATES: [f64; 8] = [-20.0, -3.0, -0.5, 0.25, 2.0, 6.5, 7.5, 30.0];
const UPS: [f64; 8] = [5.0, -8.0, -1.5, 0.75, 9.0, -6.5, -0.25, -40.0];

/// How close functions with a sigmoid are in f64: Burn 0.22.1 computes it in f32 on ndarray, and gates and their products are large here.
fn tolerance(backend: &str) -> f64 {
    match backend {
        "ndarray" => 2e-6,
        _ => 1e-12,
    }
}

#[test]
fn functions_and_their_gradients_are_those_of_their_formulas() {
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    type Formula<'a> = &'a dyn Fn(f64, f64) -> f64;
    let formulas: [(FeedForwardActivation, Formula); 6] = [
        (FeedForwardActivation::QuickGelu, &|x, _| {
            x * sigmoid(1.702 * x)
        }),
        (FeedForwardActivation::Silu, &|x, _| x * sigmoid(x)),
        (FeedForwardActivation::ReluSquared, &|x, _| {
            if x > 0.0 { x * x } else { 0.0 }
        }),
        (FeedForwardActivation::SwiGlu, &|x, up| x * sigmoid(x) * up),
        (FeedForwardActivation::ReGlu, &|x, up| x.max(0.0) * up),
        // As `GptOssExperts._apply_gate` of `transformers`.
        (FeedForwardActivation::ClampedSwiGlu, &|x, up| {
            let (gate, up) = (x.min(7.0), up.clamp(-7.0, 7.0));
            (up + 1.0) * gate * sigmoid(1.702 * gate)
        }),
    ];
    for (backend, device) in devices::cpu() {
        let tolerance = tolerance(backend);
        for (activation, formula) in &formulas {
            let [output, by_gate, by_up] =
                function(*activation, &GATES, &UPS, &device.clone().autodiff());
            let each = |f: &dyn Fn(f64, f64) -> f64| {
                let pairs = GATES.iter().zip(&UPS);
                let numbers: Vec<f64> = pairs.map(|(&gate, &up)| f(gate, up)).collect();
                TensorData::new(numbers, [GATES.len(), 1])
            };
            let step = 1e-5;
            let slope = |ahead: f64, behind: f64| (ahead - behind) / (2.0 * step);
            let of_gate = each(&|x, up| slope(formula(x + step, up), formula(x - step, up)));
            let of_up = each(&|x, up| slope(formula(x, up + step), formula(x, up - step)));
            let name = |what: &str| format!("{activation:?} on {backend}: {what}");
            // Differences are that exact.
            let of_slopes = f64::max(tolerance, 1e-8);
            assert_close(&name("output"), &output, &each(formula), tolerance);
            assert_close(&name("by the gate"), &by_gate, &of_gate, of_slopes);
            assert_close(&name("by the other"), &by_up, &of_up, of_slopes);
        }
    }
}

#[test]
fn a_gate_is_a_third_matrix() {
    let device = devices::any();
    for activation in ACTIVATIONS {
        let matrices = if activation.is_gated() { 3 } else { 2 };
        let config = FeedForwardConfig::new(D_MODEL, D_FF).with_activation(activation);
        let module = config.with_bias(false).init(&device);
        assert_eq!(
            burn::module::Module::num_params(&module),
            matrices * D_MODEL * D_FF
        );
    }
}

#[test]
fn gate_and_up_projection_start_as_if_each_were_alone() {
    let _alone = alone();
    let device = devices::any();
    let config = FeedForwardConfig::new(D_MODEL, D_FF)
        .with_activation(FeedForwardActivation::SwiGlu)
        .with_initializer(Initializer::XavierUniform { gain: 1.0 });
    let module = config.init(&device);
    let bound = |fan_out: usize| (6.0 / (D_MODEL + fan_out) as f32).sqrt();
    for part in [0, 1] {
        let weight = module.linear_inner.weight.val();
        let weight = numbers(&weight.narrow(1, part * D_FF, D_FF)).into_iter();
        let largest = weight.map(f32::abs).fold(0.0, f32::max);
        // One of 435 uniform numbers is near the bound; that of one matrix twice as wide is a fifth lower.
        assert!(
            largest <= bound(D_FF) && largest > bound(2 * D_FF),
            "{largest}"
        );
    }
}

#[test]
fn dropout_acts_in_training_alone() {
    let _alone = alone();
    for (_, device) in devices::cpu() {
        for activation in ACTIVATIONS {
            let run = |dropout, device: &Device| {
                burn_attn::seed(device, 7);
                let x: Tensor<3> = tensor([2, 7, D_MODEL], 3, device);
                network(activation, dropout, device).forward(x)
            };
            assert_same(&run(0.5, &device), &run(0.0, &device));
            let device = device.clone().autodiff();
            assert!(differs(&run(0.5, &device), &run(0.0, &device)));
            assert_same(&run(0.5, &device), &run(0.5, &device));
        }
    }
}

#[test]
fn feed_forward_networks_and_experts_of_a_layer_may_have_a_dropout_of_their_own() {
    let _alone = alone();
    for (_, device) in devices::cpu() {
        let device = device.autodiff();
        let x: Tensor<3> = tensor([2, 7, D_MODEL], 1, &device);
        for experts in [None, Some(ExpertsConfig::new(5, 3))] {
            let output = |dropout, inside| {
                let block = BlockConfig::new()
                    .with_dropout(dropout)
                    .with_feed_forward_dropout(inside)
                    .with_experts(experts.clone());
                let layer = TransformerLayerConfig::new(D_MODEL, D_FF, N_HEADS).with_block(block);
                let layer = filled(layer.init(&device), 1);
                match (layer.feed_forward, layer.mixture_of_experts) {
                    (Some(network), _) => network.forward(x.clone()),
                    (None, experts) => experts.expect("experts").forward(x.clone()),
                }
            };
            let whole = output(0.0, None);
            assert_same(&output(0.5, Some(0.0)), &whole);
            assert!(differs(&output(0.5, None), &whole));
            assert!(differs(&output(0.0, Some(0.5)), &whole));
        }
    }
}

#[test]
fn empty_input_gives_empty_output() {
    for (_, device) in devices::cpu() {
        for activation in ACTIVATIONS {
            let module = network(activation, 0.0, &device);
            for shape in [[0, 7, D_MODEL], [2, 0, D_MODEL]] {
                assert_eq!(
                    module.forward(Tensor::<3>::zeros(shape, &device)).dims(),
                    shape
                );
                let [batch, len, width] = shape;
                let input = match activation.is_gated() {
                    true => [batch, len, 2 * width],
                    false => shape,
                };
                let x = Tensor::<3>::zeros(input, &device);
                assert_eq!(activation.forward(x).dims(), shape);
            }
            let x = Tensor::<3>::zeros([2, 3, 0], &device);
            assert_eq!(activation.forward(x).dims(), [2, 3, 0]);
        }
    }
}

#[test]
#[should_panic(expected = "has an odd number of columns")]
fn half_a_gate_is_refused_without_tokens() {
    let x = Tensor::<3>::zeros([0, 7, 5], &devices::any());
    FeedForwardActivation::SwiGlu.forward(x);
}
