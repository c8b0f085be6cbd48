//! Tensors in host memory, as the kernels read them.

use burn::{
    backend::{
        Backend, TensorMetadata,
        tensor::{BoolTensor, FloatTensor, IntTensor},
    },
    tensor::{DType, Element, FloatDType, Shape},
};
use burn_attn_kernels_cpu::{
    Blocks, Broadcast, Mask, Problem, Segments,
    tiled::{self, Rows},
};

use super::problem_of;
use crate::{AttentionScalars, MaskInputs, ScoreInputs};

/// A slice that starts at a tensor's first element, and the tensor's strides in elements.
pub(crate) type Strided<'a, T> = (&'a [T], Vec<usize>);

/// A backend whose tensors are in host memory.
pub(crate) trait Host: Backend {
    /// The elements in place; `None` if their order cannot be expressed with non-negative strides.
    ///
    /// # Panics
    /// The dtype is not that of `T`.
    fn floats<T: Plain>(tensor: &FloatTensor<Self>) -> Option<Strided<'_, T>>;
    /// As [`floats`](Self::floats).
    fn bools(tensor: &BoolTensor<Self>) -> Option<Strided<'_, bool>>;
    /// All elements, row-major.
    fn ints(tensor: &IntTensor<Self>) -> Vec<i64>;
    /// A row-major copy.
    fn copy_floats(tensor: &FloatTensor<Self>) -> FloatTensor<Self>;
    /// A row-major copy.
    fn copy_bools(tensor: &BoolTensor<Self>) -> BoolTensor<Self>;
    /// The tensor, row-major, with its elements rewritten by `change`: in place if nothing else holds them and the backend
    /// can do it.
    ///
    /// # Panics
    /// As [`floats`](Self::floats).
    fn changed<T: Plain>(
        tensor: FloatTensor<Self>,
        change: impl FnOnce(&mut [T]),
    ) -> FloatTensor<Self>;
    /// A row-major tensor.
    fn float_tensor<T: Plain>(elements: Vec<T>, shape: Shape) -> FloatTensor<Self>;
}

/// A number with the same representation in a tensor and in a slice.
pub(crate) trait Plain: Element + bytemuck::Pod {}
impl<T: Element + bytemuck::Pod> Plain for T {}

/// A float type that both Burn and the kernels know.
pub(crate) trait HostElement: tiled::Element<Real: Plain> + Plain {}
impl<T: tiled::Element<Real: Plain> + Plain> HostElement for T {}

/// Operands that can be read as slices, copied where that was necessary.
pub(crate) struct Readable<B: Backend> {
    pub(crate) problem: Problem,
    query: FloatTensor<B>,
    key: FloatTensor<B>,
    value: FloatTensor<B>,
    pub(crate) bias: Option<FloatTensor<B>>,
    pub(crate) distance_bias: Option<FloatTensor<B>>,
    pub(crate) sinks: Option<FloatTensor<B>>,
    visible_blocks: Option<BoolTensor<B>>,
    masked: Option<BoolTensor<B>>,
    key_lengths: Option<Vec<usize>>,
    query_offsets: Option<Vec<i64>>,
    segments: Option<[Vec<i64>; 2]>,
    scalars: AttentionScalars,
}

impl<B: Host> Readable<B> {
    pub(crate) fn new<T: HostElement>(operands: &ScoreInputs<B>, value: &FloatTensor<B>) -> Self {
        let problem = problem_of(operands, value);
        let Problem { len_q, len_kv, .. } = problem;
        let MaskInputs {
            visible_blocks,
            masked,
            key_lengths,
            query_offsets,
            query_segments,
            key_segments,
        } = &operands.mask;
        let wide = <T::Real as Element>::dtype();
        Self {
            problem,
            query: with_rows::<B, T>(&operands.query),
            key: with_rows::<B, T>(&operands.key),
            value: with_rows::<B, T>(value),
            bias: operands.bias.as_ref().map(|bias| {
                let bias = in_dtype::<B>(bias.clone(), wide);
                if B::floats::<T::Real>(&bias).is_some() {
                    bias
                } else {
                    B::copy_floats(&bias)
                }
            }),
            distance_bias: operands.distance_bias.as_ref().map(row_major::<B, T::Real>),
            sinks: operands.sinks.as_ref().map(row_major::<B, T::Real>),
            visible_blocks: visible_blocks.as_ref().map(readable_bools::<B>),
            masked: masked.as_ref().map(readable_bools::<B>),
            key_lengths: key_lengths.as_ref().map(|lengths| {
                // As in the general bodies, for callers that skip the checks: a length beyond the keys hides nothing, a
                // negative one everything.
                let length = |length: i64| usize::try_from(length).unwrap_or(0).min(len_kv);
                B::ints(lengths).into_iter().map(length).collect()
            }),
            query_offsets: query_offsets.as_ref().map(|offsets| {
                // As in the general bodies, for callers that skip the checks.
                let offset = |offset: i64| offset.clamp(-(len_q as i64), len_kv as i64);
                B::ints(offsets).into_iter().map(offset).collect()
            }),
            segments: query_segments
                .as_ref()
                .zip(key_segments.as_ref())
                .map(|(query, key)| [B::ints(query), B::ints(key)]),
            scalars: operands.scalars,
        }
    }

    pub(crate) fn inputs<T: HostElement>(&self) -> tiled::Inputs<'_, T> {
        let scalars = self.scalars;
        tiled::Inputs {
            problem: self.problem,
            q: rows::<B, T>(&self.query),
            k: rows::<B, T>(&self.key),
            v: rows::<B, T>(&self.value),
            mask: Mask {
                by_position: scalars.by_position,
                key_lengths: self.key_lengths.as_deref(),
                query_offsets: self.query_offsets.as_deref(),
                segments: self
                    .segments
                    .as_ref()
                    .map(|[queries, keys]| Segments { queries, keys }),
                blocks: self.visible_blocks.as_ref().zip(scalars.block_size).map(
                    |(table, size)| Blocks {
                        visible: broadcast(B::bools(table), table.shape().dims()),
                        size,
                    },
                ),
                masked: self
                    .masked
                    .as_ref()
                    .map(|masked| broadcast(B::bools(masked), masked.shape().dims())),
            },
            bias: self
                .bias
                .as_ref()
                .map(|bias| broadcast(B::floats::<T::Real>(bias), bias.shape().dims())),
            distance_bias: self.distance_bias.as_ref().map(elements::<B, T::Real>),
            sinks: self.sinks.as_ref().map(elements::<B, T::Real>),
            softcap: scalars.softcap,
            scale: Some(scalars.scale),
            dropout: scalars.dropout,
        }
    }
}

/// The tensor, copied if it could not be read as a slice.
fn readable_bools<B: Host>(tensor: &BoolTensor<B>) -> BoolTensor<B> {
    if B::bools(tensor).is_some() {
        tensor.clone()
    } else {
        B::copy_bools(tensor)
    }
}

/// What `Readable` and its helpers guarantee.
const READABLE: &str = "the tensor was made readable";

fn broadcast<T>(strided: Option<Strided<'_, T>>, shape: [usize; 4]) -> Broadcast<'_, T> {
    let (data, strides) = strided.expect(READABLE);
    let strides = strides.try_into().expect("the operand has four dimensions");
    Broadcast::strided(data, shape, strides).expect("the strides stay inside the tensor")
}

/// The tensor with contiguous rows.
pub(crate) fn with_rows<B: Host, T: Plain>(tensor: &FloatTensor<B>) -> FloatTensor<B> {
    match B::floats::<T>(tensor) {
        Some((_, strides)) if strides[3] == 1 || tensor.shape().dims::<4>()[3] == 1 => {
            tensor.clone()
        }
        _ => B::copy_floats(tensor),
    }
}

/// The rows of a tensor that [`with_rows`] has returned.
pub(crate) fn rows<B: Host, T: Plain>(tensor: &FloatTensor<B>) -> Rows<'_, T> {
    let (data, strides) = B::floats::<T>(tensor).expect(READABLE);
    Rows::new(data, [strides[0], strides[1], strides[2]])
}

/// The tensor in the dtype of `R`, row-major.
pub(crate) fn row_major<B: Host, R: Plain>(tensor: &FloatTensor<B>) -> FloatTensor<B> {
    let tensor = in_dtype::<B>(tensor.clone(), <R as Element>::dtype());
    if contiguous::<B, R>(&tensor).is_some() {
        tensor
    } else {
        B::copy_floats(&tensor)
    }
}

/// The elements, if they are row-major and contiguous.
pub(crate) fn contiguous<B: Host, R: Plain>(tensor: &FloatTensor<B>) -> Option<&[R]> {
    let (data, strides) = B::floats::<R>(tensor)?;
    let shape = tensor.shape();
    let elements = shape.num_elements();
    let mut expected = 1;
    // The strides of a tensor without elements mean nothing.
    let contiguous = elements == 0
        || (0..strides.len()).rev().all(|axis| {
            let fits = shape[axis] == 1 || strides[axis] == expected;
            expected *= shape[axis];
            fits
        });
    contiguous.then(|| &data[..elements])
}

/// The elements of a tensor that [`row_major`] has returned.
pub(crate) fn elements<B: Host, R: Plain>(tensor: &FloatTensor<B>) -> &[R] {
    contiguous::<B, R>(tensor).expect(READABLE)
}

pub(crate) fn in_dtype<B: Backend>(tensor: FloatTensor<B>, dtype: DType) -> FloatTensor<B> {
    if tensor.dtype() == dtype {
        tensor
    } else {
        B::float_cast(tensor, FloatDType::from(dtype))
    }
}
