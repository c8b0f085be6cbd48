//! What passes between the operations and the backends: tensors of a backend, and numbers.
//!
//! Burn's backend-extension macro does not map `Option<tensor>`, so optional tensors are enums with an empty variant.

use std::sync::Arc;

use burn::{
    backend::{
        Backend, Dispatch, DispatchTensor, ExtensionType, TensorMetadata,
        tensor::{BoolTensor, FloatTensor, IntTensor},
    },
    tensor::{Bool, Float, Int, Tensor, kind::Autodiff},
};
use burn_attn_kernels_cpu::{
    AttentionDropout, BlockSize, PositionMask, Problem, tiled::RotaryLayout,
};

use crate::function::{BlockTable, MaskFunction, ScoreFunction};

macro_rules! optional {
    ($name:ident, $tensor:ident, $doc:literal) => {
        #[doc = $doc]
        #[derive(Clone, Debug, Default, ExtensionType)]
        #[extension_type(fusion: cfg(feature = "cube"))]
        pub enum $name<B: Backend> {
            /// No tensor was given.
            #[default]
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

            /// What `change` makes of the tensor, if there is one.
            pub fn map<C: Backend>(
                self,
                change: impl FnOnce($tensor<B>) -> $tensor<C>,
            ) -> $name<C> {
                self.into_option().map(change).into()
            }
        }

        impl<B: Backend> From<Option<$tensor<B>>> for $name<B> {
            fn from(option: Option<$tensor<B>>) -> Self {
                option.map_or(Self::Absent, Self::Present)
            }
        }
    };
}

optional!(OptionalFloat, FloatTensor, "A float tensor or nothing.");
optional!(OptionalBool, BoolTensor, "A bool tensor or nothing.");
optional!(OptionalInt, IntTensor, "An int tensor or nothing.");

/// The part of [`AttentionOptions`](crate::AttentionOptions) that is not a tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttentionScalars {
    /// Factor on the dot products.
    pub scale: f64,
    /// Bound on the scores.
    pub softcap: Option<f64>,
    /// The parts of the mask that depend on position alone: causal mask and window.
    pub by_position: PositionMask,
    /// Whether the keys of [`MaskInputs::first_keys`] stay hidden from the queries before them.
    pub first_keys_are_causal: bool,
    /// Size of the blocks of [`MaskInputs::visible_blocks`]; present if and only if the table is.
    pub block_size: Option<BlockSize>,
    /// Dropout on the weights.
    pub dropout: Option<AttentionDropout>,
    /// Which implementation to use.
    pub body: Body,
}

/// Which implementation of the operation to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Body {
    /// The backend's kernels if they support the call, otherwise the blockwise body.
    #[default]
    Fastest,
    /// The blockwise body, in blocks of about this many scores per head, or of one query with all its keys if those are more. `None`: of a size
    /// that it chooses.
    Blockwise(Option<usize>),
}

/// The inputs of the weights: all inputs but the value.
#[derive(Clone, Debug, ExtensionType)]
#[extension_type(fusion: cfg(feature = "cube"))]
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
    /// One dimension, in f32 or wider: the floats that [`score_function`](Self::score_function) has captured, one tensor after the other.
    #[extension_type]
    pub captured: OptionalFloat<B>,
    /// What changes the scaled scores before the softcap.
    pub score_function: Option<ScoreFunction>,
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

    /// Whether the call has a score function or a mask function.
    pub fn has_function(&self) -> bool {
        self.score_function.is_some() || !self.mask.functions.is_empty()
    }

    /// Whether the call has a function that kernels which compute number by number cannot run.
    pub(crate) fn needs_tensor_form(&self) -> bool {
        let functions = &self.mask.functions;
        let of_scores = self.score_function.as_ref();
        of_scores.is_some_and(|call| !call.is_scalar())
            || functions.len() > 1
            || functions.iter().any(|call| !call.is_scalar())
    }

    /// The tensors that may have a gradient, if their gradients are `required`: query, key, value, dense bias, distance bias,
    /// sinks and captured floats.
    pub fn differentiable<'a>(
        &'a self,
        value: &'a FloatTensor<B>,
        required: RequiredGrads,
    ) -> [Option<&'a FloatTensor<B>>; 7] {
        let mut tensors = [
            Some(&self.query),
            Some(&self.key),
            Some(value),
            self.bias.as_ref(),
            self.distance_bias.as_ref(),
            self.sinks.as_ref(),
            self.captured.as_ref(),
        ];
        for (tensor, required) in tensors.iter_mut().zip(required) {
            *tensor = tensor.filter(|_| required);
        }
        tensors
    }
}

impl ScoreInputs<Dispatch> {
    /// The same without autodiff, which keeps what it records until the next backward pass, even if nothing reads the results.
    pub(crate) fn without_autodiff(self) -> Self {
        let mask = self.mask;
        Self {
            query: constant::<Float>(self.query),
            key: constant::<Float>(self.key),
            bias: self.bias.map(constant::<Float>),
            distance_bias: self.distance_bias.map(constant::<Float>),
            sinks: self.sinks.map(constant::<Float>),
            captured: self.captured.map(constant::<Float>),
            mask: MaskInputs {
                visible_blocks: mask.visible_blocks.map(constant::<Bool>),
                masked: mask.masked.map(constant::<Bool>),
                key_lengths: mask.key_lengths.map(constant::<Int>),
                first_keys: mask.first_keys.map(constant::<Int>),
                query_offsets: mask.query_offsets.map(constant::<Int>),
                query_segments: mask.query_segments.map(constant::<Int>),
                key_segments: mask.key_segments.map(constant::<Int>),
                ..mask
            },
            ..self
        }
    }
}

/// A tensor without autodiff, of any number of dimensions: that of the type is not read.
fn constant<K: Autodiff>(tensor: DispatchTensor) -> DispatchTensor {
    let tensor = Tensor::<1, K>::from_dispatch(tensor);
    tensor.without_autodiff().into_dispatch()
}

/// The tensors that hide keys or place queries. None has a gradient.
#[derive(Clone, Debug, Default, ExtensionType)]
#[extension_type(fusion: cfg(feature = "cube"))]
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
    /// `[batch]`, from 0 to `len_kv`, a range to which every body clamps: this many keys are not hidden by position.
    #[extension_type]
    pub first_keys: OptionalInt<B>,
    /// `[batch]`, from `−len_q` to `len_kv`, a range to which every body clamps: the position of the first query on the axis of
    /// the keys. Absent: the causal alignment decides.
    #[extension_type]
    pub query_offsets: OptionalInt<B>,
    /// `[batch, len_q]`; present if and only if [`key_segments`](Self::key_segments) is.
    #[extension_type]
    pub query_segments: OptionalInt<B>,
    /// `[batch, len_kv]`
    #[extension_type]
    pub key_segments: OptionalInt<B>,
    /// Each hides what it does not show.
    pub functions: Vec<MaskFunction>,
    /// What functions show of blocks, where that is known: also of those that show or hide whole blocks alone, which are
    /// [`visible_blocks`](Self::visible_blocks).
    pub tables: Vec<Arc<BlockTable>>,
}

/// The results of the forward pass and their gradients, of the same shapes.
#[derive(Clone, Debug, ExtensionType)]
#[extension_type(fusion: cfg(feature = "cube"))]
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

/// Which gradients are required, in the order of [`ScoreInputs::differentiable`].
pub type RequiredGrads = [bool; 7];

/// Output and logsumexp.
pub type Results<B> = (FloatTensor<B>, FloatTensor<B>);

/// The arguments of [`AttentionOps::rotate`](crate::backend::AttentionOps::rotate) that are not tensors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// The row of the tables for the first row of `x`: one for all sequences, or one for each.
    pub offsets: Vec<usize>,
    /// Which numbers form a pair.
    pub layout: RotaryLayout,
    /// Whether to rotate by the inverse angle, as gradients are.
    pub inverse: bool,
}
