//! The operation made of plain tensor operations: correct on every backend, and differentiable by Burn's autodiff.
//!
//! The composed body stores the scores of its operands, so its memory grows with `len_q · len_kv`: the blockwise body gives
//! it one block at a time. Given a whole call, it is a second implementation, which tests compare with the others.

pub(crate) mod activation;
mod attention;
pub(crate) mod dropout;
mod dtype;
pub(crate) mod function;
pub(crate) mod heads;
pub(crate) mod hidden;
pub(crate) mod part;
pub(crate) mod position;
pub(crate) mod relative;
pub(crate) mod rotation;
pub(crate) mod scalars;
pub(crate) mod scores;

pub(crate) use attention::{
    forward, forward_in, of_part, weights, weights_of_part, without_scores,
};
pub(crate) use dropout::DropoutRows;
pub use dtype::counting;
pub(crate) use dtype::{
    cast, float_dtype, is_minus_infinity, least, of_device, reshape, statistics_dtype,
};
