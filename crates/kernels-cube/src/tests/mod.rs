//! The kernels against the f64 oracle, on the device that wgpu finds.

mod backward;
// SPIR-V has addresses in place of bindings, so there is no limit to test.
#[cfg(not(feature = "vulkan"))]
mod bindings;
mod case;
mod compare;
mod device;
mod few_queries;
mod generated;
mod grid;
mod matrix;
mod refused;
