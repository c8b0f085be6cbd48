//! The kernels: tiled, vectorised and parallel, in memory that grows with the lengths, not with their product.
//!
//! | folder of `src` | what it holds |
//! | --- | --- |
//! | `attention/` | [`forward`] and [`backward`] |
//! | `linear/` | [`Linear`], [`SkinnyGemm`], [`Activated`] and [`Rotation`] |
//! | `view/` | [`Rows`] and [`RowsMut`] of any strides, and their [`Element`] types |
//! | `simd/` | vectors of f32 and f64, and the GEMM |
//! | `threads/` | [`Execution`]: dividing work among threads; scratch memory |
//! | `compiled.rs` | the code that is compiled once per instruction set |
//!
//! The unsafe code is in `simd/gemm.rs`, `view/rows_mut.rs` and `threads/gate.rs`.
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

pub use crate::{
    attention::{
        backward::{Gradients, Upstream, backward},
        forward::forward,
        inputs::{Inputs, KernelError},
    },
    linear::{
        activated::Activated,
        activation::Activation,
        layer::Linear,
        rotary_rows::RotaryLayout,
        rotation::Rotation,
        skinny_gemm::{SKINNY_ROWS, SkinnyGemm},
    },
    simd::real::Real,
    threads::parallel::{Execution, Instructions},
    view::{element::Element, rows::Rows, rows_mut::RowsMut},
};
