//! What the host does: choose tiles, launch kernels.

use burn_attn_kernels_cpu::Problem;
use cubecl::{client::Client, ir::ElemType};

use crate::{Gradients, Inputs, Operand, Upstream};

/// Whether the kernels can compute this call on this device, forward and backward. `elem` is the type of the query, `optional`
/// counts the optional tensors among the inputs.
#[must_use]
pub fn supports(_client: &Client, _problem: &Problem, _elem: ElemType, _optional: usize) -> bool {
    false
}

/// Writes the output `[batch, heads_q, len_q, dim_v]`, of the query's type, and the logsumexp `[batch, heads_q, len_q]`, in f32.
/// Sizes of zero are not allowed.
pub fn forward(_client: &Client, _inputs: &Inputs, _output: &Operand, _logsumexp: &Operand) {}

/// Writes the gradients that have a place to go to. Sizes of zero are not allowed.
pub fn backward(_client: &Client, _inputs: &Inputs, _upstream: &Upstream, _gradients: &Gradients) {}
