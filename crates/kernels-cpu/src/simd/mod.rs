//! Vectors of any width, and the products of all kernels.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `real.rs` | vectors of f32 and f64, exp and tanh with their error bounds |
//! | `gemm.rs` | the GEMM and its micro-kernels |
//! | `prefetch.rs` | asking for numbers before they are needed |

pub(crate) mod gemm;
pub(crate) mod prefetch;
pub(crate) mod real;
