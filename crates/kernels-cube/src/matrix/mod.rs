//! The kernels on matrix units: output, logsumexp, and the gradients of query, key, value and biases. Half precision is multiplied as it is, or as f32
//! where only that is listed; f32 as it is, or as the sum of two numbers of a shorter type.
//!
//! A plane has `m` rows of a tile. The dot products of the rows go through shared memory to the units. A unit holds a part of one row and applies
//! every option as the other kernels do. Weights and score gradients go back to multiply rows, rounded to the type of operands. The sums of a plane stay in
//! fragments, whose layout is not portable: rescaling goes through shared memory, so the forward pass rescales only where weights grow by more than 2⁸.
//! A few queries of heads that share keys are rows of one tile, if enough cubes are left.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `shape.rs` | which calls these kernels compute, and what a cube keeps in shared memory |
//! | `operands.rs` | from tensors to shared memory |
//! | `columns.rs` | statistics of queries that are columns |
//! | `tiles.rs` | one tile after another, read ahead where there is room |
//! | `fragments.rs` | matrix products of a plane, and sums in its fragments |
//! | `weights.rs` | gradients of weights |
//! | `rescale.rs` | factors of rows, which keep sums and gradients of scores in range |
//! | `forward.rs`, `query_gradient.rs`, `key_gradient.rs`, `bias_gradient.rs` | the kernels |

pub(crate) mod bias_gradient;
mod columns;
pub(crate) mod forward;
mod fragments;
pub(crate) mod key_gradient;
mod operands;
pub(crate) mod query_gradient;
mod rescale;
pub(crate) mod shape;
mod tiles;
mod weights;
