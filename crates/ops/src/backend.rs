//! The interface between the operations and the backends: what a backend implements, and what passes through it.
//!
//! For this workspace's crates, its tests and its benchmarks: nothing here is covered by the promises of a version.
//!
//! Burn's backend-extension macro routes a call from the backend chosen at run time, inside a `Tensor`, to the implementation
//! for that backend. It does not map `Option<tensor>`, so optional tensors are enums with an empty variant.

#![allow(
    deprecated,
    reason = "the macro names NdArray, which is deprecated upstream but supported here as long as Burn has it"
)]

use burn::backend::{
    Backend, ExtensionType, TensorMetadata, backend_extension,
    tensor::{BoolTensor, FloatTensor, IntTensor},
};
use burn_attn_kernels_cpu::{AttentionDropout, BlockSize, Problem, tiled::RotaryLayout};

use crate::{
    Activation, blockwise,
    composed::{self, activation},
    heads, rotation,
};
pub use crate::{
    blockwise::blockwise_attention, check::in_host_memory, composed::composed_attention,
    distance::bias_at_positions, seed::next_dropout_seed,
};
pub use burn_attn_kernels_cpu::{AttentionDropoutRow, PositionMask};

/// The operations of this crate as operations of a backend. Users call [`attention`](crate::attention) and the other
/// functions, which check shapes first: nothing below this trait does.
///
/// The default bodies are made of plain tensor operations, so every backend has them. That of attention is linear in
/// memory, forward and backward. `Autodiff` has gradient rules for some of the others; Burn differentiates the rest.
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

    /// The `required` gradients of [`fused_attention`](Self::fused_attention), from its results and their gradients.
    fn fused_attention_backward(
        #[extension_type] inputs: ScoreInputs<Self>,
        value: FloatTensor<Self>,
        #[extension_type] saved: SavedAndGrads<Self>,
        required: RequiredGrads,
    ) -> Gradients<Self> {
        blockwise::backward::<Self>(inputs, value, saved, required)
    }

    /// The factors by which [`dropout`](crate::dropout) multiplies a tensor of this shape, device and dtype: 0 or
    /// `1 / (1 − probability)`; 0 or 1 in half precision, whose numbers are scaled in f32 afterwards.
    ///
    /// The default draws them on the device, from its own generator.
    fn dropout_factors(like: FloatTensor<Self>, dropout: AttentionDropout) -> FloatTensor<Self> {
        composed::factors_of_device::<Self>(like, dropout)
    }

    /// The heads of several operands, `[batch, heads[i], len, d_head]`, from one projection
    /// `[batch, len, sum(heads) · d_head]`.
    fn split_heads(x: FloatTensor<Self>, heads: Vec<usize>) -> Vec<FloatTensor<Self>> {
        heads::split::<Self>(x, &heads)
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
        activation::activate::<Self>(x, bias, activation, gated)
    }

    /// The gradient of `x` from that of [`activate`](Self::activate)'s result. That of the bias is its sum over the rows.
    fn activate_backward(
        x: FloatTensor<Self>,
        #[extension_type] bias: OptionalFloat<Self>,
        gradient: FloatTensor<Self>,
        activation: Activation,
        gated: bool,
    ) -> FloatTensor<Self> {
        activation::activate_backward::<Self>(x, bias, gradient, activation, gated)
    }

    /// `x`, `[batch, heads, len, d_head]`, with its pairs rotated by the angles in the tables, `[positions, pairs]`.
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

// LibTorch and remote servers have no kernels of ours. A server does not know this crate: it understands the plain operations,
// recorded one by one.
#[cfg(feature = "tch")]
impl AttentionOps for burn::backend::LibTorch {}

#[cfg(feature = "remote")]
impl<C: burn_router::RouterChannel> AttentionOps
    for burn_fusion::Fusion<burn_router::BackendRouter<C>>
{
}

#[cfg(feature = "remote")]
impl<C: burn_router::RouterChannel> AttentionOps for burn_router::BackendRouter<C> {}

macro_rules! optional {
    ($(#[$doc:meta])* $name:ident, $tensor:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, ExtensionType)]
        pub enum $name<B: Backend> {
            /// No tensor was given.
            Absent,
            /// The tensor.
            Present($tensor<B>),
        }

        impl<B: Backend> $name<B> {
            /// The tensor, if there is one.
            pub fn into_option(self) -> Option<$tensor<B>> {
                match self {
                    Self::Absent => None,
                    Self::Present(tensor) => Some(tensor),
                }
            }

            /// A reference to the tensor, if there is one.
            pub fn as_ref(&self) -> Option<&$tensor<B>> {
                match self {
                    Self::Absent => None,
                    Self::Present(tensor) => Some(tensor),
                }
            }

            /// The tensor that `option` holds.
            pub fn from_option(option: Option<$tensor<B>>) -> Self {
                match option {
                    Some(tensor) => Self::Present(tensor),
                    None => Self::Absent,
                }
            }
        }
    };
}

optional!(
    /// A float tensor or nothing.
    OptionalFloat,
    FloatTensor
);
optional!(
    /// A bool tensor or nothing.
    OptionalBool,
    BoolTensor
);
optional!(
    /// An int tensor or nothing.
    OptionalInt,
    IntTensor
);

/// The part of [`AttentionOptions`](crate::AttentionOptions) that is not a tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttentionScalars {
    /// Factor on the dot products.
    pub scale: f64,
    /// Bound on the scores, if there is one.
    pub softcap: Option<f64>,
    /// The parts of the mask that depend on position alone: causal mask and window.
    pub by_position: PositionMask,
    /// Size of the blocks of [`MaskInputs::visible_blocks`]: given if and only if they are.
    pub block_size: Option<BlockSize>,
    /// Dropout on the weights.
    pub dropout: Option<AttentionDropout>,
    /// Which implementation to use.
    pub body: Body,
}

/// Which implementation of the operation to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Body {
    /// The backend's kernels if it has some for the call, otherwise the blockwise body.
    #[default]
    Fastest,
    /// The blockwise body.
    Blockwise,
    /// The blockwise body in blocks of about this many scores per head, or of one query with all its keys if those are more.
    BlocksOf(usize),
}

/// All inputs of the weights, that is, all inputs but the values.
#[derive(Clone, Debug, ExtensionType)]
pub struct ScoreInputs<B: Backend> {
    /// `[batch, heads_q, len_q, dim_qk]`
    pub query: FloatTensor<B>,
    /// `[batch, heads_kv, len_kv, dim_qk]`
    pub key: FloatTensor<B>,
    /// Added to the scores; broadcastable to `[batch, heads_q, len_q, len_kv]`.
    #[extension_type]
    pub bias: OptionalFloat<B>,
    /// `[heads_q, len_q + len_kv − 1]` in f32 or wider; score `(i, j)` gets entry `i − j + len_kv − 1` of its head. With
    /// [`query_offsets`](MaskInputs::query_offsets) `[heads_q, 2 · (len_q + len_kv) − 1]`; score `(b, i, j)` gets entry
    /// `query_offsets[b] + i − j + len_q + len_kv − 1`.
    #[extension_type]
    pub distance_bias: OptionalFloat<B>,
    /// `[heads_q]` in f32 or wider: a score that joins the denominator of every row of its head.
    #[extension_type]
    pub sinks: OptionalFloat<B>,
    /// The tensors that hide keys or place queries.
    #[extension_type]
    pub mask: MaskInputs<B>,
    /// Everything that is not a tensor.
    pub scalars: AttentionScalars,
}

impl<B: Backend> ScoreInputs<B> {
    /// The sizes of a call with these values.
    pub fn problem(&self, value: &FloatTensor<B>) -> Problem {
        let [batch, heads_q, len_q, dim_qk] = self.query.shape().dims();
        let [_, heads_kv, len_kv, dim_v] = value.shape().dims();
        Problem {
            batch,
            heads_q,
            heads_kv,
            len_q,
            len_kv,
            dim_qk,
            dim_v,
        }
    }
}

/// The tensors that hide keys or place queries. None has a gradient.
#[derive(Clone, Debug, ExtensionType)]
pub struct MaskInputs<B: Backend> {
    /// True shows a block of queries and keys; broadcastable to `[batch, heads_q, blocks of queries, blocks of keys]`.
    #[extension_type]
    pub visible_blocks: OptionalBool<B>,
    /// True hides a key; broadcastable to `[batch, heads_q, len_q, len_kv]`.
    #[extension_type]
    pub masked: OptionalBool<B>,
    /// `[batch]`
    #[extension_type]
    pub key_lengths: OptionalInt<B>,
    /// `[batch]`, from `−len_q` to `len_kv`, and clamped to that by every body: the position of the first query on the axis of
    /// the keys. Absent: the causal alignment decides.
    #[extension_type]
    pub query_offsets: OptionalInt<B>,
    /// `[batch, len_q]`; present if and only if [`key_segments`](Self::key_segments) is.
    #[extension_type]
    pub query_segments: OptionalInt<B>,
    /// `[batch, len_kv]`
    #[extension_type]
    pub key_segments: OptionalInt<B>,
}

/// The results of the forward pass and their gradients, of the same shapes.
#[derive(Clone, Debug, ExtensionType)]
pub struct SavedAndGrads<B: Backend> {
    /// The output of the forward pass.
    pub output: FloatTensor<B>,
    /// The logsumexp of the forward pass.
    pub logsumexp: FloatTensor<B>,
    /// The gradient of the output.
    pub output_gradient: FloatTensor<B>,
    /// The gradient of the logsumexp.
    pub logsumexp_gradient: FloatTensor<B>,
}

/// The required gradients, each in the shape and dtype of its tensor.
#[derive(Clone, Debug, ExtensionType)]
pub struct Gradients<B: Backend> {
    /// Of the query.
    #[extension_type]
    pub query: OptionalFloat<B>,
    /// Of the key.
    #[extension_type]
    pub key: OptionalFloat<B>,
    /// Of the value.
    #[extension_type]
    pub value: OptionalFloat<B>,
    /// Of the dense bias.
    #[extension_type]
    pub bias: OptionalFloat<B>,
    /// Of the distance bias.
    #[extension_type]
    pub distance_bias: OptionalFloat<B>,
    /// Of the sinks.
    #[extension_type]
    pub sinks: OptionalFloat<B>,
}

/// One value for each tensor that may have a gradient.
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

/// Which gradients are required.
pub type RequiredGrads = Differentiable<bool>;

/// Output and logsumexp.
pub type Results<B> = (FloatTensor<B>, FloatTensor<B>);

/// What [`AttentionOps::rotate`] does, apart from its tensors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// The row of the tables for the first row of `x`: one for all sequences, or one for each.
    pub offsets: Vec<usize>,
    /// Which numbers form a pair.
    pub layout: RotaryLayout,
    /// Whether to rotate by the opposite angle, as gradients are.
    pub opposite: bool,
}
