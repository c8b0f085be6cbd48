//! The kernels against the f64 oracle, on the device that wgpu finds.

mod backward;
mod bindings;
mod bounds;
mod case;
mod chosen;
mod compare;
mod device;
mod drivers;
mod few_queries;
mod generated;
mod grid;
mod matrix;
mod matrix_tiles;
mod oracle;
mod refused;
mod splits;
mod wgsl;
