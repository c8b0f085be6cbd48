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
use burn_attn_models::import::{self, Checkpoint, Import};
use burn_attn_tests::{
    compare::assert_close,
    devices,
    golden::{self, GoldenFile},
};

/// PyTorch computed in f64; the differences seen are up to 4e-7.
const TOLERANCE: f64 = 1e-6;

/// A file of `tests/golden/import`.
fn golden(file: &str) -> PathBuf {
    golden::path("import").join(file)
}

/// An input, or what PyTorch made of it.
fn value(name: &str, device: &Device) -> Tensor<3> {
    GoldenFile::open("import/values").tensor(name, device)
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

/// The module with the weights below this prefix.
#[track_caller]
fn loaded<M: Import>(weights: &mut Checkpoint, prefix: &str, mut module: M) -> M {
    weights.load(prefix, &mut module).expect("loaded");
    module
}

/// Whether `actual` is what PyTorch computed as `expected`.
#[track_caller]
fn assert_is(expected: &str, actual: Tensor<3>) {
    let data = value(expected, &devices::any()).to_data();
    assert_close(expected, &actual.to_data(), &data, TOLERANCE);
}
