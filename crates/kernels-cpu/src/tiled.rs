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
//! The unsafe code is in `simd/gemm.rs`, `simd/prefetch.rs`, `view/rows_mut.rs` and `threads/gate.rs`.
//!
//! # How it works
//!
//! Scores are computed transposed: neighbouring queries are in one vector, a *panel* of two vectors at a time, and the kernel runs down
//! the keys. So each of the five products of attention multiplies broadcast numbers of one matrix, read in
//! place, by vectors of the other. The maxima and sums of a tile's softmax are vectors too, and none of these products is summed
//! across a vector, except in a call of one query. A panel skips single keys that causality, window and key lengths hide from all its queries, and whole blocks
//! that segments or a mask hide. A mask is applied only to blocks that are partly hidden. Blocks of keys end where those of a
//! block table do, so that what the table hides is skipped, from 32 neighbouring keys on.
//!
//! What was tried and measured on the way is in `crates/kernels-cpu/NOTEBOOK.md` in the repository.

pub use crate::{
    attention::{
        backward::{Gradients, Upstream, backward},
        forward::forward,
        function::{
            Captured, Looped, Number, Pair, PairBlock, ScoreForm, ScoreForms, ScoreFunction, Shown,
            VisibleForm, VisibleForms, VisibleFunction,
        },
        inputs::Inputs,
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
