//! The kernels against the f64 oracle, on the device that wgpu finds.

#![cfg(feature = "wgpu")]

mod backward;
mod case;
mod device;
mod forward;
