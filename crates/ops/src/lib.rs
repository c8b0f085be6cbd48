//! Attention as one Burn operation, on every backend, with gradients.
//!
//! [`attention`] computes, for every batch item and query head,
//!
//! ```text
//! scores  = softcap(function(scale · query · keyᵀ)) + bias,   −∞ where the mask hides a key; a sink is one more score
//! output  = dropout(softmax(scores)) · value
//! ```
//!
//! The full contract (layout, order, hidden rows, causal alignment, grouped heads) is written down once, in the
//! documentation of [`burn_attn_kernels_cpu`]. [`pytorch`] lists PyTorch's names beside ours.
//!
//! | you want | you call |
//! | --- | --- |
//! | the output | [`attention`] |
//! | the output and each row's logsumexp, so that partial results can be merged | [`attention_with_logsumexp`] |
//! | to merge attention over keys that were split | [`merge_partial`] |
//! | to inspect the weights, or every step | [`attention_weights`], [`attention_steps`] |
//! | to know what the weights of long sequences look like | [`attention_statistics`] |
//! | to say which keys each query sees | [`AttentionMask`] |
//! | to add to the scores: a tensor, ALiBi, T5's relative bias | [`AttentionBias`] |
//! | to change scores, or to hide keys, by functions of your own | [`ScoreFunction`], [`MaskFunction`] |
//! | everything else (scale, softcap, sinks, query offsets, dropout) | [`AttentionOptions`] |
//! | the heads of a packed projection | [`split_heads`] |
//! | rotary positions | [`rotate`] |
//! | a linear layer, fast even for the few rows of decoding; a linear layer with its activation | [`linear`], [`activated_linear`] |
//! | bias, activation and gate between two linear layers | [`activate`] |
//! | cheap dropout of any tensor | [`dropout`] |
//! | a seed for each call with dropout | [`next_dropout_seed`] |
//! | repeatable dropout | [`seed`], and [`with_dropout_seed`] on threads |
//!
//! Only first-order gradients exist: Burn has no double backward.

mod at_positions;
mod attention;
#[doc(hidden)]
pub mod backend;
mod bias;
mod blocks;
mod blockwise;
mod check;
mod combined;
mod composed;
mod devices;
mod distance;
mod dropout;
mod function;
mod fused;
mod heads;
mod kept_keys;
mod linear;
mod mask;
mod merge;
mod options;
mod placed;
#[doc = include_str!("pytorch.md")]
pub mod pytorch {}
mod rotation;
mod routed;
mod seed;
mod segments;
mod statistics;
mod steps;
mod union;

pub use attention::{attention, attention_weights, attention_with_logsumexp};
pub use bias::AttentionBias;
pub use burn_attn_kernels_cpu::tiled::{Number, Pair, PairBlock, ScoreForm, Shown, VisibleForm};
pub use burn_attn_kernels_cpu::{
    AttentionDropout, BlockSize, CausalAlignment, DropoutError, RelativeBuckets,
    RelativeBucketsError, alibi_slopes,
};
pub use dropout::dropout;
pub use function::{Captured, MaskFunction, Pairs, ScoreFunction};
pub use heads::split_heads;
pub use linear::{Activation, activate, activated_linear, linear};
pub use mask::AttentionMask;
pub use merge::merge_partial;
pub use options::AttentionOptions;
pub use rotation::{RotaryLayout, rotate};
pub use seed::{next_dropout_seed, seed, with_dropout_seed};
pub use statistics::{AttentionStatistics, StatisticsOptions, attention_statistics};
pub use steps::{AttentionSteps, attention_steps};

/// The README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
