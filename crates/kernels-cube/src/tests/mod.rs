//! The kernels against the f64 oracle, on the device that wgpu finds.

mod backward;
mod bindings;
mod case;
mod device;
mod few_queries;
mod grid;
mod refused;
mod whole_rows;
