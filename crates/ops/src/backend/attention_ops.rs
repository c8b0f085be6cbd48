//! The operations as operations of a backend.
//!
//! Burn's backend-extension macro routes a call from the backend chosen at run time, inside a `Tensor`, to the implementation
//! for that backend.

#![allow(
    deprecated,
    reason = "the macro names NdArray, which is deprecated upstream but supported here as long as Burn has it"
)]

use burn::backend::{Backend, backend_extension, tensor::FloatTensor};
use burn_attn_kernels_cpu::{AttentionDropout, tiled::Activation};

use super::operands::{OptionalFloat, RequiredGrads, Rotation, SavedAndGrads, ScoreInputs};
use crate::{blockwise, composed};

/// The operations of this crate as operations of a backend. Users call [`attention`](crate::attention) and the other
/// functions, which check shapes: implementations of this trait rely on that.
///
/// The default bodies are made of plain tensor operations, so every backend has them. Attention by its default body is linear
/// in memory, forward and backward. `Autodiff` has gradient rules for some operations; Burn differentiates the others.
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
    fn fused_attention(
        #[extension_type] inputs: ScoreInputs<Self>,
        value: FloatTensor<Self>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        blockwise::forward::<Self>(inputs, value)
    }

    /// The `required` gradients of [`fused_attention`](Self::fused_attention), from its results and their gradients: in the order of
    /// [`ScoreInputs::differentiable`], each in the shape and dtype of its tensor. There is none of a tensor that was not given.
    fn fused_attention_backward(
        #[extension_type] inputs: ScoreInputs<Self>,
        value: FloatTensor<Self>,
        #[extension_type] saved: SavedAndGrads<Self>,
        required: RequiredGrads,
    ) -> Vec<FloatTensor<Self>> {
        blockwise::backward::<Self>(inputs, value, saved, required)
    }

    /// The factors by which [`dropout`](crate::dropout) multiplies a tensor of this shape, device and dtype: 0 or
    /// `1 / (1 − probability)`; 0 or 1 in half precision, whose numbers are scaled in f32 afterwards.
    ///
    /// The default draws the factors on the device, from Burn's generator.
    fn dropout_factors(like: FloatTensor<Self>, dropout: AttentionDropout) -> FloatTensor<Self> {
        composed::dropout::factors_of_device::<Self>(like, dropout)
    }

    /// The heads of several operands, `[batch, heads[i], len, d_head]`, from one projection
    /// `[batch, len, sum(heads) · d_head]`.
    fn split_heads(x: FloatTensor<Self>, heads: Vec<usize>) -> Vec<FloatTensor<Self>> {
        composed::heads::split::<Self>(x, &heads)
    }

    /// [`activate`](Self::activate) of `[rows, depth]` times `[depth, columns]`.
    fn linear(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        #[extension_type] bias: OptionalFloat<Self>,
        activation: Activation,
        gated: bool,
    ) -> FloatTensor<Self> {
        Self::activate(Self::float_matmul(x, weight), bias, activation, gated)
    }

    /// See [`activate`](crate::activate).
    fn activate(
        x: FloatTensor<Self>,
        #[extension_type] bias: OptionalFloat<Self>,
        activation: Activation,
        gated: bool,
    ) -> FloatTensor<Self> {
        composed::activation::activate::<Self>(x, bias, activation, gated)
    }

    /// The gradient of `x` from the gradient of [`activate`](Self::activate)'s result. Its sum over the rows is the gradient of
    /// the bias.
    fn activate_backward(
        x: FloatTensor<Self>,
        #[extension_type] bias: OptionalFloat<Self>,
        gradient: FloatTensor<Self>,
        activation: Activation,
        gated: bool,
    ) -> FloatTensor<Self> {
        composed::activation::activate_backward::<Self>(x, bias, gradient, activation, gated)
    }

    /// `x`, `[batch, heads, len, d_head]`, with its pairs rotated by the angles in the tables, `[positions, pairs]`.
    fn rotate(
        x: FloatTensor<Self>,
        cos: FloatTensor<Self>,
        sin: FloatTensor<Self>,
        rotation: Rotation,
    ) -> FloatTensor<Self> {
        composed::rotation::rotate::<Self>(x, cos, sin, &rotation)
    }
}

// This workspace has no kernels for LibTorch and remote servers. A server does not know this crate: it understands the plain
// operations, recorded one by one.
#[cfg(feature = "tch")]
impl AttentionOps for burn::backend::LibTorch {}

#[cfg(feature = "remote")]
impl<C: burn_router::RouterChannel> AttentionOps
    for burn_fusion::Fusion<burn_router::BackendRouter<C>>
{
}

#[cfg(feature = "remote")]
impl<C: burn_router::RouterChannel> AttentionOps for burn_router::BackendRouter<C> {}
