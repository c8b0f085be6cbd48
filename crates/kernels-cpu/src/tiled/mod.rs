//! The kernels: tiled, vectorised, parallel, in memory that grows with the lengths, never with their product.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `inputs.rs`, `rows.rs`, `element.rs` | what a call takes: [`Inputs`], [`Rows`] of any strides, f32, f64, f16 and bf16 |
//! | `tile.rs` | how queries and keys are cut up: tiles, panels, blocks |
//! | `forward.rs` | [`forward`]: output and logsumexp, tile by tile, with an online softmax |
//! | `decode.rs` | the same for a single query, shared out over keys |
//! | `backward/` | [`backward`]: all gradients, from the saved output and logsumexp |
//! | `scores.rs` | softcap, biases and dropout on the scores of one panel |
//! | `visibility.rs` | the mask: which blocks of keys are skipped, and hiding in those that are hidden in part |
//! | `rotation.rs` | [`Rotation`]: rotary positions |
//! | `unseen.rs` | NaN in keys that nobody sees |
//! | `real.rs` | vectors of f32 and f64, exp and tanh with their error bounds |
//! | `raw.rs` | the innermost product, and rows that several threads write: with `gate.rs` the only unsafe code |
//! | `transpose.rs`, `compiled.rs` | between rows and panels; what is compiled once |
//! | `parallel.rs`, `helper_threads.rs`, `gate.rs` | who works on what; threads that help as far as they come in time; when a call is over |
//!
//! # How it works
//!
//! Scores are computed transposed: neighbouring queries lie in one vector, a *panel* of two vectors at a time, and run down
//! the keys. So every one of the five products of attention multiplies broadcast numbers of one matrix, read where it
//! lies, with vectors of the other; maxima and sums of the softmax are vectors too, and nothing is ever summed across a
//! vector. A panel skips the keys that causality, window and key lengths hide from all its queries, one by one, and blocks
//! that segments or a mask hide; a mask is applied only to blocks that are partly hidden. The blocks of keys end where a
//! block table does, so that what the table hides is skipped to the key.
//!
//! What was tried and measured on the way is in `NOTEBOOK.md` beside this crate's `Cargo.toml`.
//!
//! # Example
//!
//! ```
//! use burn_attn_kernels_cpu::{
//!     Problem,
//!     tiled::{Execution, Inputs, RowsMut, forward, forward_scratch},
//! };
//!
//! let problem = Problem { batch: 1, heads_q: 1, heads_kv: 1, len_q: 2, len_kv: 2, dim_qk: 1, dim_v: 1 };
//! let inputs = Inputs::<f32>::new(problem, &[0.0, 0.0], &[1.0, 2.0], &[10.0, 30.0]);
//! let (mut output, mut logsumexp) = ([0.0; 2], [0.0; 2]);
//! let execution = Execution::available();
//! let mut scratch = vec![0.0; forward_scratch(&problem, execution)];
//! let rows = RowsMut::contiguous(&mut output, 1, 2, 1);
//! forward(&inputs, rows, &mut logsumexp, &mut scratch, execution).unwrap();
//! assert_eq!(output, [20.0, 20.0]);
//! ```

mod backward;
mod compiled;
mod decode;
mod element;
mod few_rows;
mod forward;
#[cfg(feature = "rayon")]
mod gate;
#[cfg(feature = "rayon")]
mod helper_threads;
mod inputs;
mod parallel;
mod raw;
mod real;
mod rotation;
mod rows;
mod scores;
mod tile;
mod transpose;
mod unseen;
mod visibility;

pub use backward::{Gradients, Upstream, backward, backward_scratch};
pub use element::Element;
pub use few_rows::{FEW_ROWS, FewRows};
pub use forward::{forward, forward_scratch};
pub use inputs::{Inputs, KernelError};
pub use parallel::{Execution, Instructions};
pub use raw::RowsMut;
pub use real::Real;
pub use rotation::{RotaryLayout, Rotation};
pub use rows::Rows;

use crate::Problem;

/// Floating-point operations of the forward pass, if everything is visible.
fn work(problem: &Problem) -> f64 {
    // Not `score_elements`, which nothing holds and which need not fit into a `usize`.
    let scores = problem.query_rows() as f64 * problem.len_kv as f64;
    2.0 * scores * (problem.dim_qk as f64 + problem.dim_v as f64)
}
