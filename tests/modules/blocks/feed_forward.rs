//! The feed-forward network on its own.

use burn::{
    nn::Initializer,
    tensor::{Device, Tensor},
};
use burn_attn::{FeedForward, FeedForwardActivation, FeedForwardConfig};

use super::{ACTIVATIONS, D_FF, D_MODEL, by_hand};
use crate::{
    compare::{assert_close, assert_same, differs, numbers},
    devices,
    numbers::{alone, filled, tensor},
};

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
        // Of 435 uniform numbers one is near the bound; that of one matrix twice as wide is a fifth lower.
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
fn nothing_in_nothing_out() {
    for (_, device) in devices::cpu() {
        for activation in ACTIVATIONS {
            let module = network(activation, 0.0, &device);
            for shape in [[0, 7, D_MODEL], [2, 0, D_MODEL]] {
                assert_eq!(
                    module.forward(Tensor::<3>::zeros(shape, &device)).dims(),
                    shape
                );
            }
        }
    }
}
