//! The kernels against the f64 oracle, on the device that wgpu finds.

mod backward;
// SPIR-V has addresses in place of bindings, so there is no limit to test.
#[cfg(not(feature = "vulkan"))]
mod bindings;
mod case;
mod device;
mod few_queries;
mod grid;
mod refused;
