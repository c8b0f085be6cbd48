//! Bias, activation and gate between linear layers, by plain tensor operations.

mod backward;
mod forward;
mod function;

pub(crate) use backward::activate_backward;
pub(crate) use forward::activate;
