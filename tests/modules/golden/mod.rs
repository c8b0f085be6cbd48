//! PyTorch's values, gradients and a training curve; `tests/golden/README.md` says how they were made.

mod attention;
mod blocks;
#[path = "../../golden_file.rs"]
#[allow(dead_code, reason = "the suite of the operation uses the rest")]
pub mod file;
mod inputs;
mod layers;
mod layout;
mod training;
mod transformers;

use burn::tensor::Device;

use crate::devices;

/// Runs `check` on every CPU backend of this build, with autodiff.
fn on_every_device(check: impl Fn(&Device)) {
    for (name, device) in devices::cpu() {
        println!("on {name}");
        check(&device.autodiff());
    }
}
