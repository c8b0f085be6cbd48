//! Weights from PyTorch and burn-nn: the same numbers, or a sentence and the module as it was.
//! `tests/golden/import/make_import.py` made the files.

mod attention;
mod burn_nn;
mod content;
mod damage;
mod export;
mod layers;

use std::path::PathBuf;

use burn::tensor::{Device, Tensor};
use burn_attn_models::import::{self, Checkpoint};
use burn_store::{ModuleStore, SafetensorsStore, bridge};

use crate::{compare::assert_close, devices};

/// PyTorch computed in f64; the differences seen are up to 4e-7.
const TOLERANCE: f32 = 1e-6;

/// A file of `tests/golden/import`.
fn golden(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("golden/import")
        .join(file)
}

/// An input, or what PyTorch made of it.
fn value(name: &str, device: &Device) -> Tensor<3> {
    let mut values = SafetensorsStore::from_file(golden("values.safetensors"));
    let stored = values.get_tensor(name).expect("a readable file");
    let stored = stored.unwrap_or_else(|| panic!("there is no value {name}"));
    Tensor::from_data(bridge::to_data(stored).expect("numbers"), device)
}

/// Runs `check` on both files of the same weights, on every CPU backend, with autodiff and without.
fn from_both_files(name: &str, check: impl Fn(Checkpoint, &Device)) {
    for (backend, device) in devices::cpu() {
        for file in [format!("{name}.pt"), format!("{name}.safetensors")] {
            println!("{file} on {backend}");
            for device in [device.clone(), device.clone().autodiff()] {
                check(import::pytorch(golden(&file)).expect("readable"), &device);
            }
        }
    }
}

/// Whether `actual` is what PyTorch computed as `expected`.
#[track_caller]
fn assert_is(expected: &str, actual: Tensor<3>) {
    let data = value(expected, &devices::any()).to_data();
    assert_close(expected, &actual.to_data(), &data, TOLERANCE);
}
