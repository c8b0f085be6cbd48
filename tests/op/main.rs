//! Suites over the operation: against the f64 oracle, and the properties of its contract, on every CPU backend.

mod bad_input;
mod case;
mod dropout;
mod oracle;
mod properties;

use burn::tensor::Device;

/// Every CPU backend that is built in, plain.
#[allow(
    deprecated,
    reason = "burn-ndarray is deprecated upstream and supported here"
)]
fn devices() -> Vec<Device> {
    vec![
        #[cfg(feature = "flex")]
        Device::flex(),
        #[cfg(feature = "ndarray")]
        Device::ndarray(),
    ]
}
