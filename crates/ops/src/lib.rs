//! Attention as one Burn operation, on every backend, with gradients.
//!
//! [`attention`] computes, for every batch item and query head,
//!
//! ```text
//! scores  = softcap(scale · query · keyᵀ) + bias,   −∞ where the mask hides a key; a sink is one more score
//! output  = dropout(softmax(scores)) · value
//! ```
//!
//! The full contract (layout, order, hidden rows, causal alignment, grouped heads) is written down once, in the
//! documentation of [`burn_attn_kernels_cpu`].
//!
//! | you want | you call |
//! | --- | --- |
//! | the output | [`attention`] |
//! | the output and each row's logsumexp, so that partial results can be merged | [`attention_with_logsumexp`] |
//! | attention over a context that was split, in one piece | [`merge_partial`] |
//! | to look at the weights | [`attention_weights`] |
//! | to say who sees whom | [`AttentionMask`] |
//! | the heads of a packed projection | [`split_heads`] |
//! | rotary positions | [`rotate`] |
//! | a linear layer, also of the few rows of decoding; with what is behind it | [`linear`], [`activated_linear`] |
//! | what is between two linear layers, with a bias and a gate | [`activate`] |
//! | dropout of any tensor, cheaply | [`dropout`] |
//! | to add to the scores: a tensor, ALiBi, T5's relative bias | [`AttentionBias`] |
//! | everything else (scale, softcap, sinks, dropout) | [`AttentionOptions`] |
//! | to check the values of a tensor without waiting for a device | [`in_host_memory`] |
//!
//! The crate is laid out as: `attention` (the public functions), `merge` (of partial results), `options`, `mask`, `bias` (what a
//! caller says), `blocks` (tables of blocks as one operand), `distance` (ALiBi and the relative bias as one operand), `dropout`,
//! `activation` (what is between two linear layers), `check` (bad shapes become one sentence), `extension` (the only file with Burn's backend-extension macro),
//! `operands` (what travels through it), `backends` (who implements it), `fused` (kernels and the gradient rules), `blockwise` (the
//! body made of plain tensor operations, for backends without kernels), `composed` (one block of it), `heads` (one projection for several operands), `linear` (a linear layer), `rotation` (rotary positions), `seed`
//! (repeatable dropout).
//!
//! Only first-order gradients exist: Burn has no double backward.

mod activation;
mod attention;
mod backends;
mod bias;
mod blocks;
mod blockwise;
mod check;
mod composed;
mod distance;
mod dropout;
mod extension;
mod fused;
mod heads;
mod linear;
mod mask;
mod merge;
mod operands;
mod options;
mod rotation;
mod seed;

pub use activation::{Activation, activate};
pub use attention::{attention, attention_weights, attention_with_logsumexp};
#[doc(hidden)]
pub use attention::{blockwise_attention, composed_attention};
pub use bias::AttentionBias;
pub use burn_attn_kernels_cpu::{
    BlockSize, CausalAlignment, Dropout, DropoutError, DropoutRow, PositionMask, RelativeBuckets,
    RelativeBucketsError, Window, alibi_slopes,
};
pub use check::in_host_memory;
pub use dropout::dropout;
pub use extension::AttentionOps;
pub use heads::split_heads;
pub use linear::{activated_linear, linear};
pub use mask::AttentionMask;
pub use merge::merge_partial;
pub use operands::{
    AttentionScalars, Body, Differentiable, Gradients, MaskInputs, OptionalBool, OptionalFloat,
    OptionalInt, Results, ScoreInputs, Upstream, Wanted,
};
pub use options::AttentionOptions;
pub use rotation::{RotaryLayout, Rotation, rotate};
pub use seed::{next_dropout_seed, seed};

/// The README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
