//! The kernels: tiled, vectorised, parallel, in memory that does not grow with the number of scores.
mod backward;
mod compiled;
mod decode;
mod element;
mod forward;
mod inputs;
mod parallel;
mod raw;
mod real;
mod rows;
mod scores;
mod tile;
mod transpose;
mod unseen;

pub use backward::{Gradients, Upstream, backward, backward_scratch};
pub use element::Element;
pub use forward::{forward, forward_scratch};
pub use inputs::{Inputs, KernelError};
pub use parallel::{Execution, Instructions};
pub use raw::RowsMut;
pub use real::Real;
pub use rows::Rows;

use crate::Problem;

/// Floating-point operations of the forward pass, if everything is visible.
fn work(problem: &Problem) -> f64 {
    2.0 * problem.score_elements() as f64 * (problem.dim_qk + problem.dim_v) as f64
}
