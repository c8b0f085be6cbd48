//! Attention by kernels of our own: forward and backward, one pair per backend.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `mod.rs` | [`AttentionKernels`]: which backend has kernels, and what they take and give |
//! | `host.rs` | the kernels of `kernels-cpu` over any backend whose tensors lie in host memory |
//! | `flex.rs`, `ndarray.rs` | how the tensors of one backend are read and made |
//! | `product.rs` | the product of few rows, for decoding |
//! | `rotation.rs` | rotary positions |
//! | `autodiff.rs` | the gradient rule |

#[cfg(feature = "autodiff")]
mod autodiff;
#[cfg(feature = "flex")]
mod flex;
#[cfg(any(feature = "flex", feature = "ndarray"))]
mod host;
#[cfg(feature = "ndarray")]
mod ndarray;
#[cfg(any(feature = "flex", feature = "ndarray"))]
mod product;
#[cfg(any(feature = "flex", feature = "ndarray"))]
mod rotation;
#[cfg(any(feature = "flex", feature = "ndarray"))]
#[cfg(all(test, feature = "flex", feature = "autodiff"))]
mod tests;

#[cfg(any(feature = "flex", feature = "ndarray"))]
pub(crate) use product::product;
#[cfg(any(feature = "flex", feature = "ndarray"))]
pub(crate) use rotation::rotate;

use burn::backend::{
    Backend,
    tensor::{BoolTensor, FloatTensor, IntTensor},
};

use crate::{AttentionScalars, ScoreInputs};

/// Kernels of a backend, if it has any; a backend without them takes the composed body.
///
/// Forward and backward come together, so that no backend has one without the other.
pub trait AttentionKernels: Backend {
    /// The kernels.
    fn kernels() -> Option<Kernels<Self>> {
        None
    }
}

/// A forward and the backward that belongs to it.
pub struct Kernels<B: Backend> {
    /// Output and logsumexp; see [`AttentionOps::attention`](crate::AttentionOps::attention).
    pub forward: fn(&Operands<B>) -> Results<B>,
    /// The gradients that [`Wanted`] asks for.
    pub backward: fn(&Operands<B>, Upstream<B>, Wanted) -> Gradients<B>,
}

/// One of each tensor that may have a gradient.
#[derive(Clone, Copy, Debug, Default)]
pub struct Differentiable<X> {
    /// Of the query.
    pub query: X,
    /// Of the key.
    pub key: X,
    /// Of the value.
    pub value: X,
    /// Of the dense bias.
    pub bias: X,
    /// Of the distance bias.
    pub distance_bias: X,
    /// Of the sinks.
    pub sinks: X,
}

/// Output and logsumexp.
pub type Results<B> = (FloatTensor<B>, FloatTensor<B>);

/// The gradients that were asked for.
pub type Gradients<B> = Differentiable<Option<FloatTensor<B>>>;

/// Which gradients are asked for.
pub type Wanted = Differentiable<bool>;

/// All tensors and scalars of one call; see [`ScoreInputs`] for the shapes.
#[derive(Clone, Debug)]
pub struct Operands<B: Backend> {
    /// `[batch, heads_q, len_q, dim_qk]`
    pub query: FloatTensor<B>,
    /// `[batch, heads_kv, len_kv, dim_qk]`
    pub key: FloatTensor<B>,
    /// `[batch, heads_kv, len_kv, dim_v]`
    pub value: FloatTensor<B>,
    /// Broadcastable to the scores.
    pub bias: Option<FloatTensor<B>>,
    /// `[heads_q, len_q + len_kv − 1]`
    pub distance_bias: Option<FloatTensor<B>>,
    /// `[heads_q]`
    pub sinks: Option<FloatTensor<B>>,
    /// Everything without a gradient.
    pub fixed: Fixed<B>,
}

/// The operands that have no gradient.
#[derive(Clone, Debug)]
pub struct Fixed<B: Backend> {
    /// True shows a block; broadcastable to the blocks of the scores.
    pub visible_blocks: Option<BoolTensor<B>>,
    /// True hides a key; broadcastable to the scores.
    pub masked: Option<BoolTensor<B>>,
    /// `[batch]`
    pub key_lengths: Option<IntTensor<B>>,
    /// `[batch, len_q]` and `[batch, len_kv]`
    pub segments: Option<(IntTensor<B>, IntTensor<B>)>,
    /// Everything that is not a tensor.
    pub scalars: AttentionScalars,
}

/// What the forward pass left behind, and the gradients that come in; shapes as there.
#[derive(Clone, Debug)]
pub struct Upstream<B: Backend> {
    /// The output of the forward pass.
    pub output: FloatTensor<B>,
    /// The logsumexp of the forward pass.
    pub logsumexp: FloatTensor<B>,
    /// The gradient of the output.
    pub output_gradient: FloatTensor<B>,
    /// The gradient of the logsumexp.
    pub logsumexp_gradient: FloatTensor<B>,
}

impl<B: Backend> Operands<B> {
    pub(crate) fn new(inputs: ScoreInputs<B>, value: FloatTensor<B>) -> Self {
        Self {
            query: inputs.query,
            key: inputs.key,
            value,
            bias: inputs.bias.into_option(),
            distance_bias: inputs.distance_bias.into_option(),
            sinks: inputs.sinks.into_option(),
            fixed: Fixed {
                visible_blocks: inputs.visible_blocks.into_option(),
                masked: inputs.masked.into_option(),
                key_lengths: inputs.key_lengths.into_option(),
                segments: inputs
                    .query_segments
                    .into_option()
                    .zip(inputs.key_segments.into_option()),
                scalars: inputs.scalars,
            },
        }
    }
}

/// Output and logsumexp, by kernels if the backend has them.
#[cfg(any(feature = "flex", feature = "ndarray"))]
pub(crate) fn forward<B: AttentionKernels>(
    inputs: ScoreInputs<B>,
    value: FloatTensor<B>,
) -> (FloatTensor<B>, FloatTensor<B>) {
    match B::kernels() {
        Some(kernels) => (kernels.forward)(&Operands::new(inputs, value)),
        None => crate::composed::forward(inputs, value),
    }
}
