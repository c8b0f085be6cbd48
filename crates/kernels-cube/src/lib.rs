//! Attention on GPUs: fused CubeCL kernels, forward and backward, linear in memory.
//!
//! The contract (layout, order of operations, hidden rows, dropout) is that of [`burn_attn_kernels_cpu`].

mod forward;
mod launch;
mod operands;
mod score;
mod tile;

pub use launch::{backward, forward, supports};
pub use operands::{Gradients, Inputs, Operand, Upstream};
