//! Attention on plain slices: the contract that every implementation follows, a naive f64 implementation that the others are tested against,
//! and fast CPU kernels.
//!
//! If you use Burn, you want the crate `burn-attn`, which is built on this one. This crate does not depend on Burn, so its masks, dropout and
//! kernels can be tested and fuzzed in seconds.
//!
//! | to | use |
//! | --- | --- |
//! | compute attention fast, in f32, f64, f16 or bf16 | [`tiled::forward`] and [`tiled::backward`] |
//! | compute it slowly and exactly, to check another implementation | [`oracle::forward`] and [`oracle::backward`] |
//! | change scores, or hide keys, by functions of your own | [`tiled::ScoreForm`] and [`tiled::VisibleForm`] |
//! | know what an option means | [the contract](#the-contract-of-attention) |
//!
//! ```
//! use burn_attn_kernels_cpu::{
//!     CausalAlignment, Mask, Options, PositionMask, Problem,
//!     tiled::{Execution, Inputs, RowsMut, forward},
//! };
//!
//! // One head, two tokens, vectors of one number.
//! let problem = Problem { batch: 1, heads_q: 1, heads_kv: 1, len_q: 2, len_kv: 2, dim_qk: 1, dim_v: 1 };
//! let by_position = PositionMask::causal(CausalAlignment::BottomRight);
//! let inputs = Inputs::<f32> {
//!     options: Options { mask: Mask { by_position, ..Mask::default() }, ..Options::default() },
//!     ..Inputs::new(problem, &[0.0, 0.0], &[1.0, 2.0], &[10.0, 30.0])
//! };
//! let (mut output, mut logsumexp) = ([0.0; 2], [0.0; 2]);
//! forward(&inputs, RowsMut::contiguous(&mut output, 1, 2, 1), &mut logsumexp, Execution::available())?;
//! assert_eq!(output, [10.0, 20.0]); // the first token sees itself, the second sees both
//! # Ok::<(), burn_attn_kernels_cpu::InputError>(())
//! ```
//!
//! | item | what it is |
//! | --- | --- |
//! | [`Problem`] | the seven sizes of one call, and where each row is in the flat buffers |
//! | [`Mask`] | which keys a query may see: [`PositionMask`] ([`CausalAlignment`], [`Window`]), [`FirstKeys`], key lengths, [`Segments`], [`Blocks`], a bool tensor |
//! | [`Options`] | mask, bias, sinks, softcap, scale and dropout of a call |
//! | [`Broadcast`] | a `[batch, heads, len_q, len_kv]` operand, any of whose sizes may be 1 |
//! | [`RelativeBuckets`], [`alibi_slopes`], [`DistanceAxis`] | biases that depend only on the distance of a key: T5's, ALiBi's, and the operand that kernels get for both |
//! | [`AttentionDropout`] | which weights are dropped, recomputed from their indices and never stored |
//! | [`oracle`] | forward and backward straight from the formula, in f64, never optimised |
//! | [`tiled`] | fast forward and backward, in memory linear in the lengths |
//!
//! # Features
//!
//! | feature | default | what it adds |
//! | --- | --- | --- |
//! | `std` | yes | vector instructions found at run time, f16 in hardware, elementary functions of `std` instead of `libm` |
//! | `rayon` | yes | threads; implies `std` |
//!
//! Without either, the crate needs only `core` and `alloc` and runs on the calling thread, so it builds for wasm32 and for
//! machines without an operating system. [`tiled::Instructions`] says which instructions it uses there.
//!
#![doc = include_str!("contract.md")]
// Unit tests always have `std`.
#![cfg_attr(not(test), no_std)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod attention;
mod bias;
mod broadcast;
mod compiled;
mod dropout;
mod extent;
mod linear;
mod mask;
mod math;
mod options;
pub mod oracle;
mod problem;
mod simd;
mod threads;
pub mod tiled;
mod view;

pub use bias::{DistanceAxis, RelativeBuckets, RelativeBucketsError, alibi_slopes};
pub use broadcast::{Broadcast, BroadcastError};
pub use dropout::{AttentionDropout, AttentionDropoutRow, DropoutError};
pub use mask::{
    BlockSize, Blocks, CausalAlignment, FirstKeys, Mask, MaskError, PositionMask, Segments, Window,
};
pub use options::{InputError, Options};
pub use problem::{Problem, ProblemError};

/// The README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
