//! The kernels: tiled, vectorised and parallel, in memory that grows with the lengths, not with their product.
//!
//! The kernels, in `kernel/`, compute one tile. The drivers, in the other files, check the inputs, divide the work among threads and manage
//! memory.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `inputs.rs`, `element.rs` | the inputs of a call: [`Inputs`], in f32, f64, f16 and bf16 |
//! | `rows.rs`, `rows_mut.rs`, `head_rows.rs` | [`Rows`] and [`RowsMut`] of any strides, and how tiles access them |
//! | `forward.rs` | [`forward`]: output and logsumexp, tile by tile, with an online softmax |
//! | `decode.rs` | the same for a single query, with the keys divided among threads |
//! | `backward/` | [`backward`]: all gradients, from the saved output and logsumexp |
//! | `skinny_gemm.rs`, `rotation.rs` | [`SkinnyGemm`]: a few rows times a weight; [`Rotation`]: rotary positions |
//! | `linear.rs` | [`Linear`]: a linear layer of many rows, followed by its activation |
//! | `activation.rs` | [`Activated`]: the activation between the linear layers of a feed-forward network |
//! | `compiled.rs` | the code that is compiled once per instruction set |
//! | `parallel.rs`, `helper_threads.rs`, `gate.rs` | dividing work among threads; threads that help if they arrive in time; when a call is over |
//! | `scratch.rs` | scratch memory, which each thread keeps |
//!
//! The unsafe code is in `kernel/gemm.rs`, `rows_mut.rs` and `gate.rs`.
//!
//! # How it works
//!
//! Scores are computed transposed: neighbouring queries are in one vector, a *panel* of two vectors at a time, and the kernel runs down
//! the keys. So each of the five products of attention multiplies broadcast numbers of one matrix, read in
//! place, by vectors of the other. The maxima and sums of a tile's softmax are vectors too, and nothing is summed
//! across a vector. A panel skips single keys that causality, window and key lengths hide from all its queries, and whole blocks
//! that segments or a mask hide. A mask is applied only to blocks that are partly hidden. Blocks of keys end where those of a
//! block table do, so that exactly the keys that the table hides are skipped.
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
mod forward;
#[cfg(feature = "rayon")]
mod gate;
mod head_rows;
#[cfg(feature = "rayon")]
mod helper_threads;
mod inputs;
mod kernel;
mod linear;
mod parallel;
mod rotation;
mod rows;
mod rows_mut;
mod scratch;
mod skinny_gemm;

pub use activation::Activated;
pub use backward::{Gradients, Upstream, backward};
pub use element::Element;
pub use forward::forward;
pub use inputs::{Inputs, KernelError};
pub use kernel::{activation::Activation, real::Real, rotation::RotaryLayout};
pub use linear::Linear;
pub use parallel::{Execution, Instructions};
pub use rotation::Rotation;
pub use rows::Rows;
pub use rows_mut::RowsMut;
pub use skinny_gemm::{SKINNY_ROWS, SkinnyGemm};
