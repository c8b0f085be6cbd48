//! The kernels in half precision on matrix units: output, logsumexp, and the gradients of query, key and value.
//!
//! A plane has `m` rows of a tile. Its products with the columns go through shared memory to units, of which each holds a part of one row
//! and applies every option as the other kernels do; weights and score gradients go back, rounded to the type of the tensors. What a plane adds up stays in its fragments, whose layout nobody knows: so the forward pass rescales its sums
//! only where a maximum grows by more than a few powers of two.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `shape.rs` | which calls are for them, and what a cube keeps in shared memory |
//! | `operands.rs` | from tensors to shared memory |
//! | `tiles.rs` | one tile after another, each read while the one before is computed |
//! | `fragments.rs` | the products of planes, and their sums |
//! | `rescale.rs` | factors of rows, which keep sums and gradients of scores in range |
//! | `forward.rs`, `query_gradient.rs`, `key_gradient.rs` | the kernels |

pub(crate) mod forward;
mod fragments;
pub(crate) mod key_gradient;
mod operands;
pub(crate) mod query_gradient;
mod rescale;
pub(crate) mod shape;
mod tiles;
