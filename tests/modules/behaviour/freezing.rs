//! What is frozen does not learn, and what is not does.

use burn::{
    module::Module,
    optim::{AdamConfig, GradientsParams},
    tensor::{Device, Tensor},
};
use burn_attn::{Transformer, TransformerConfig, TransformerInput};
use burn_attn_tests::{
    devices,
    numbers::{alone, filled, tensor},
    parameters,
};

fn transformer(device: &Device) -> Transformer {
    filled(TransformerConfig::new(15, 29, 3, 2, 2).init(device), 1)
}

fn loss(module: &Transformer, device: &Device) -> Tensor<1> {
    let source: Tensor<3> = tensor([2, 7, 15], 3, device).require_grad();
    let target: Tensor<3> = tensor([2, 5, 15], 4, device);
    module
        .forward(TransformerInput::new(source, target))
        .square()
        .mean()
}

/// The paths of the parameters that a step of Adam changed.
fn changed(module: Transformer, device: &Device) -> Vec<String> {
    let before = parameters::values(&module);
    let gradients = GradientsParams::from_grads(loss(&module, device).backward(), &module);
    let module = AdamConfig::new().init().step(1e-2, module, gradients);
    let after = parameters::values(&module).into_iter();
    let changed = after.filter(|(path, value)| value != &before[path]);
    changed.map(|(path, _)| path).collect()
}

fn paths(module: &Transformer) -> Vec<String> {
    parameters::values(module).into_keys().collect()
}

#[test]
fn a_step_changes_every_parameter_also_of_a_thawed_module() {
    let _alone = alone();
    for (_, device) in devices::cpu() {
        let device = device.autodiff();
        let thawed = transformer(&device).freeze().unfreeze();
        for module in [transformer(&device), thawed] {
            assert_eq!(changed(module.clone(), &device), paths(&module));
        }
    }
}

#[test]
fn a_frozen_module_learns_nothing() {
    let _alone = alone();
    for (_, device) in devices::cpu() {
        let device = device.autodiff();
        for frozen in [
            transformer(&device).no_grad(),
            transformer(&device).freeze(),
        ] {
            assert_eq!(changed(frozen, &device), Vec::<String>::new());
        }
    }
}

#[test]
fn a_frozen_part_learns_nothing_and_lets_gradients_pass() {
    let _alone = alone();
    for (_, device) in devices::cpu() {
        let device = device.autodiff();
        let mut module = transformer(&device);
        // The last layer of the encoder: what comes before it learns through it.
        let frozen = "encoder.layers.1.";
        module.encoder.layers[1] = module.encoder.layers[1].clone().freeze();
        let others: Vec<_> = paths(&module)
            .into_iter()
            .filter(|path| !path.starts_with(frozen))
            .collect();
        assert_eq!(changed(module, &device), others);
    }
}
