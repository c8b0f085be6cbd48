//! Suites over the operation: against the f64 oracle, and the properties of its contract, on every backend of the build.

mod activation;
mod bad_input;
mod bias;
mod case;
mod dense_twins;
mod dropout;
mod every_case;
mod few_rows;
mod golden;
mod heads;
mod merge;
mod option_tensors;
mod options;
mod oracle;
mod poisons;
mod properties;
mod rotation;
mod strided;
mod subsets;

use burn::tensor::{DType, Device};

#[path = "../devices.rs"]
mod devices;

/// Every device of this build and this machine, plain.
fn devices() -> Vec<Device> {
    let cpu = devices::cpu().into_iter().map(|(_, device)| device);
    #[cfg(feature = "wgpu")]
    let cpu = cpu.chain(devices::wgpu());
    cpu.collect()
}

/// Those of them that compute in `dtype`. Burn 0.22.1 says that wgpu computes in f64, and its results are wrong.
fn devices_with(dtype: DType) -> Vec<Device> {
    match dtype {
        DType::F64 => devices::cpu()
            .into_iter()
            .map(|(_, device)| device)
            .collect(),
        _ => devices(),
    }
}
