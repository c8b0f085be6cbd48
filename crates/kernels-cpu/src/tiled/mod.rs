//! The kernels: tiled, vectorised, parallel, in memory that grows with the lengths, never with their product.
//!
//! Kernels, in `kernel/`, know numbers and vectors: what one tile does. Drivers, the other files, know what a call takes, who
//! works on what, and in which memory.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `inputs.rs`, `element.rs` | what a call takes: [`Inputs`], in f32, f64, f16 and bf16 |
//! | `rows.rs`, `rows_mut.rs`, `head_rows.rs` | [`Rows`] and [`RowsMut`] of any strides, and how tiles get at them |
//! | `forward.rs` | [`forward`]: output and logsumexp, tile by tile, with an online softmax |
//! | `decode.rs` | the same for a single query, shared out over keys |
//! | `backward/` | [`backward`]: all gradients, from the saved output and logsumexp |
//! | `few_rows.rs`, `rotation.rs` | [`FewRows`], the product of few rows; [`Rotation`]: rotary positions |
//! | `many_rows.rs` | [`ManyRows`]: a linear layer of many rows, with the activation behind it |
//! | `activation.rs` | [`Activated`]: what is between the linear layers of a feed-forward network |
//! | `nan_padding.rs` | NaN in keys that no query sees |
//! | `compiled.rs` | what is compiled once per instruction set |
//! | `parallel.rs`, `helper_threads.rs`, `gate.rs` | who works on what; threads that help as far as they come in time; when a call is over |
//! | `scratch.rs` | the memory of kernels, which stays with its thread |
//!
//! The unsafe code is in `kernel/product.rs`, `rows_mut.rs` and `gate.rs`.
//!
//! # How it works
//!
//! Scores are computed transposed: neighbouring queries lie in one vector, a *panel* of two vectors at a time, and run down
//! the keys. So every one of the five products of attention multiplies broadcast numbers of one matrix, read where it
//! lies, with vectors of the other; maxima and sums of a tile's softmax are vectors too, and nothing in it is summed
//! across a vector. A panel skips the keys that causality, window and key lengths hide from all its queries, one by one, and blocks
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
//!     tiled::{Execution, Inputs, RowsMut, forward},
//! };
//!
//! let problem = Problem { batch: 1, heads_q: 1, heads_kv: 1, len_q: 2, len_kv: 2, dim_qk: 1, dim_v: 1 };
//! let inputs = Inputs::<f32>::new(problem, &[0.0, 0.0], &[1.0, 2.0], &[10.0, 30.0]);
//! let (mut output, mut logsumexp) = ([0.0; 2], [0.0; 2]);
//! let rows = RowsMut::contiguous(&mut output, 1, 2, 1);
//! forward(&inputs, rows, &mut logsumexp, Execution::available()).unwrap();
//! assert_eq!(output, [20.0, 20.0]);
//! ```

mod activation;
mod backward;
mod compiled;
mod decode;
mod element;
mod few_rows;
mod forward;
#[cfg(feature = "rayon")]
mod gate;
mod head_rows;
#[cfg(feature = "rayon")]
mod helper_threads;
mod inputs;
mod kernel;
mod many_rows;
mod nan_padding;
mod parallel;
mod rotation;
mod rows;
mod rows_mut;
mod scratch;

pub use activation::Activated;
pub use backward::{Gradients, Upstream, backward};
pub use element::Element;
pub use few_rows::{FEW_ROWS, FewRows};
pub use forward::forward;
pub use inputs::{Inputs, KernelError};
pub use kernel::{activation::Activation, real::Real, rotation::RotaryLayout};
pub use many_rows::ManyRows;
pub use parallel::{Execution, Instructions};
pub use rotation::Rotation;
pub use rows::Rows;
pub use rows_mut::RowsMut;
