//! Attention on GPUs: fused CubeCL kernels, forward and backward, linear in memory.
//!
//! The contract (layout, order of operations, hidden rows, dropout) is that of [`burn_attn_kernels_cpu`].

mod bias_gradient;
mod forward;
mod key_gradient;
mod launch;
mod operands;
mod query_gradient;
mod row_terms;
mod score;
mod tile;
mod weights;

pub use launch::{backward, forward, supports};
pub use operands::{Gradients, Inputs, Operand, Upstream};
