//! PyTorch's values, gradients and a training curve; `tests/golden/README.md` says how they were made.

mod attention;
mod blocks;
mod inputs;
mod layers;
mod layers_of_models;
mod layout;
mod training;
mod transformers;

use burn::tensor::Device;
use burn_attn_tests::devices;

/// Runs `check` on every CPU backend of this build, with autodiff.
fn on_every_device(check: impl Fn(&Device)) {
    for (name, device) in devices::cpu() {
        println!("on {name}");
        check(&device.autodiff());
    }
}
