//! The only file with Burn's backend-extension macro.
//!
//! The trait only routes: from the runtime-chosen backend inside a `Tensor` to an implementation for that backend.
//! The macro does not map `Option<tensor>` inputs, so optional tensors travel as enums with an empty variant.

#![allow(
    deprecated,
    reason = "the macro names NdArray, which is deprecated upstream and a backend of ours as long as Burn has it"
)]

use burn::backend::{
    Backend, ExtensionType, backend_extension,
    tensor::{BoolTensor, FloatTensor, IntTensor},
};
use burn_attn_kernels_cpu::{BlockSize, CausalAlignment, Dropout, Window};

use crate::{
    composed, heads, linear,
    rotation::{self, Rotation},
};

/// A float tensor or nothing.
#[derive(ExtensionType)]
pub enum OptionalFloat<B: Backend> {
    /// No tensor was given.
    Absent,
    /// The tensor.
    Present(FloatTensor<B>),
}

impl<B: Backend> OptionalFloat<B> {
    /// The tensor, if there is one.
    pub fn into_option(self) -> Option<FloatTensor<B>> {
        match self {
            Self::Absent => None,
            Self::Present(tensor) => Some(tensor),
        }
    }
}

/// A bool tensor or nothing.
#[derive(ExtensionType)]
pub enum OptionalBool<B: Backend> {
    /// No tensor was given.
    Absent,
    /// The tensor.
    Present(BoolTensor<B>),
}

impl<B: Backend> OptionalBool<B> {
    /// The tensor, if there is one.
    pub fn into_option(self) -> Option<BoolTensor<B>> {
        match self {
            Self::Absent => None,
            Self::Present(tensor) => Some(tensor),
        }
    }
}

/// An int tensor or nothing.
#[derive(ExtensionType)]
pub enum OptionalInt<B: Backend> {
    /// No tensor was given.
    Absent,
    /// The tensor.
    Present(IntTensor<B>),
}

impl<B: Backend> OptionalInt<B> {
    /// The tensor, if there is one.
    pub fn into_option(self) -> Option<IntTensor<B>> {
        match self {
            Self::Absent => None,
            Self::Present(tensor) => Some(tensor),
        }
    }
}

/// The part of [`AttentionOptions`](crate::AttentionOptions) that is not a tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttentionScalars {
    /// Factor on the dot products.
    pub scale: f64,
    /// Bound of the scores, or none.
    pub softcap: Option<f64>,
    /// Causal mask and its alignment.
    pub causal: Option<CausalAlignment>,
    /// Sliding window (tokens).
    pub window: Option<Window>,
    /// Size of the blocks of [`ScoreInputs::visible_blocks`]; there is one exactly if there is the other.
    pub block_size: Option<BlockSize>,
    /// Dropout on the weights.
    pub dropout: Option<Dropout>,
}

/// Everything the weights are made of, that is, all inputs but the values.
#[derive(ExtensionType)]
pub struct ScoreInputs<B: Backend> {
    /// `[batch, heads_q, len_q, dim_qk]`
    pub query: FloatTensor<B>,
    /// `[batch, heads_kv, len_kv, dim_qk]`
    pub key: FloatTensor<B>,
    /// Added to the scores; broadcastable to `[batch, heads_q, len_q, len_kv]`.
    #[extension_type]
    pub bias: OptionalFloat<B>,
    /// `[heads_q, len_q + len_kv − 1]` in f32 or wider; score `(i, j)` gets entry `i − j + len_kv − 1` of its head.
    #[extension_type]
    pub distance_bias: OptionalFloat<B>,
    /// `[heads_q]` in f32 or wider: a score that joins the denominator of every row of its head.
    #[extension_type]
    pub sinks: OptionalFloat<B>,
    /// True shows a block of queries and keys; broadcastable to `[batch, heads_q, blocks of queries, blocks of keys]`.
    #[extension_type]
    pub visible_blocks: OptionalBool<B>,
    /// True hides a key; broadcastable to `[batch, heads_q, len_q, len_kv]`.
    #[extension_type]
    pub masked: OptionalBool<B>,
    /// `[batch]`
    #[extension_type]
    pub key_lengths: OptionalInt<B>,
    /// `[batch, len_q]`
    #[extension_type]
    pub query_segments: OptionalInt<B>,
    /// `[batch, len_kv]`
    #[extension_type]
    pub key_segments: OptionalInt<B>,
    /// Everything that is not a tensor.
    pub scalars: AttentionScalars,
}

/// Attention as an operation of a backend. Users call [`attention`](crate::attention), which checks shapes first:
/// nothing below this trait does.
///
/// The default bodies are composed of plain tensor operations, so every backend computes them and `Autodiff`
/// differentiates them.
#[backend_extension(
    Flex: cfg(feature = "flex"),
    NdArray: cfg(feature = "ndarray"),
    Cube: cfg(feature = "cube"),
    LibTorch: cfg(feature = "tch"),
    Remote: cfg(feature = "remote"),
    Autodiff: cfg(feature = "autodiff"),
)]
pub trait AttentionOps: Backend {
    /// The output `[batch, heads_q, len_q, dim_v]` in the dtype of the query, and the logsumexp of every row
    /// `[batch, heads_q, len_q]` in f32 or wider, for values `[batch, heads_kv, len_kv, dim_v]`.
    fn attention(
        #[extension_type] inputs: ScoreInputs<Self>,
        value: FloatTensor<Self>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        composed::forward::<Self>(inputs, value)
    }

    /// What [`dropout`](crate::dropout) multiplies a tensor of this shape, device and dtype with: 0, or
    /// `1 / (1 − probability)`.
    ///
    /// The default draws on the device, from its own generator.
    fn dropout_factors(like: FloatTensor<Self>, dropout: Dropout) -> FloatTensor<Self> {
        composed::factors_of_device::<Self>(like, dropout)
    }

    /// The heads of several operands, `[batch, heads[i], len, d_head]`, from one projection
    /// `[batch, len, sum(heads) · d_head]`.
    fn split_heads(x: FloatTensor<Self>, heads: Vec<usize>) -> Vec<FloatTensor<Self>> {
        heads::split::<Self>(x, &heads)
    }

    /// `[rows, depth]` times `[depth, columns]`.
    fn product(x: FloatTensor<Self>, weight: FloatTensor<Self>) -> FloatTensor<Self> {
        linear::product::<Self>(x, weight)
    }

    /// `x` of shape `[batch, heads, len, d_head]`, its pairs rotated by the angles in tables `[positions, pairs]`.
    fn rotate(
        x: FloatTensor<Self>,
        cos: FloatTensor<Self>,
        sin: FloatTensor<Self>,
        rotation: Rotation,
    ) -> FloatTensor<Self> {
        rotation::composed::<Self>(x, cos, sin, &rotation)
    }

    /// The weights `[batch, heads_q, len_q, len_kv]` after the softmax and before dropout.
    fn attention_weights(#[extension_type] inputs: ScoreInputs<Self>) -> FloatTensor<Self> {
        composed::weights::<Self>(inputs)
    }
}
