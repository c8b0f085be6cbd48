//! The interface between the operations and the backends: what a backend implements, and what passes through it.
//!
//! For the crates, tests and benchmarks of this workspace: semantic versioning does not cover this module.

mod attention_ops;
mod operands;

pub use crate::{
    attention::{blockwise_attention, composed_attention},
    check::in_host_memory,
    composed::counting,
    distance::bias_at_positions,
};
pub use attention_ops::AttentionOps;
pub use burn_attn_kernels_cpu::{AttentionDropoutRow, PositionMask};
pub use operands::{
    AttentionScalars, Body, MaskInputs, OptionalBool, OptionalFloat, OptionalInt, RequiredGrads,
    Results, Rotation, SavedAndGrads, ScoreInputs,
};
