//! The kernels of `kernels-cpu` over tensors in host memory.

use burn::{
    backend::{
        Backend, TensorMetadata,
        tensor::{BoolTensor, FloatTensor, IntTensor},
    },
    tensor::{DType, Element, FloatDType, Shape, bf16, f16},
};
use burn_attn_kernels_cpu::{
    Blocks, Broadcast, Mask, Problem, Segments,
    tiled::{self, Execution, KernelError, Rows, RowsMut},
};

use super::AttentionKernels;
use crate::{
    AttentionScalars, Body, Gradients, MaskInputs, OptionalFloat, Results, ScoreInputs, Upstream,
    Wanted,
};

/// A slice that starts at a tensor's first element, and the tensor's strides in elements.
pub(crate) type Strided<'a, T> = (&'a [T], Vec<usize>);

/// A backend whose tensors lie in host memory.
pub(crate) trait Host: Backend {
    /// The elements where they lie; nothing if their order cannot be said with strides that are not negative.
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
    /// A row-major tensor.
    fn float_tensor<T: Plain>(elements: Vec<T>, shape: Shape) -> FloatTensor<Self>;
}

/// A number that lies in a tensor as it lies in a slice.
pub(crate) trait Plain: Element + bytemuck::Pod {}
impl<T: Element + bytemuck::Pod> Plain for T {}

/// A float type that both Burn and the kernels know.
pub(crate) trait HostElement: tiled::Element<Real: Plain> + Plain {}
impl<T: tiled::Element<Real: Plain> + Plain> HostElement for T {}

/// In the precision that the query asks for.
impl<B: Host> AttentionKernels for B {
    fn supports(inputs: &ScoreInputs<B>) -> bool {
        use DType::{BF16, F16, F32, F64};
        inputs.scalars.body == Body::Fastest
            && matches!(inputs.query.dtype(), F64 | F32 | F16 | BF16)
    }

    fn forward(inputs: &ScoreInputs<B>, value: &FloatTensor<B>) -> Results<B> {
        match inputs.query.dtype() {
            DType::F64 => forward_in::<B, f64>(inputs, value),
            DType::F16 => forward_in::<B, f16>(inputs, value),
            DType::BF16 => forward_in::<B, bf16>(inputs, value),
            _ => forward_in::<B, f32>(inputs, value),
        }
    }

    fn backward(
        inputs: &ScoreInputs<B>,
        value: &FloatTensor<B>,
        upstream: Upstream<B>,
        wanted: Wanted,
    ) -> Gradients<B> {
        match inputs.query.dtype() {
            DType::F64 => backward_in::<B, f64>(inputs, value, upstream, wanted),
            DType::F16 => backward_in::<B, f16>(inputs, value, upstream, wanted),
            DType::BF16 => backward_in::<B, bf16>(inputs, value, upstream, wanted),
            _ => backward_in::<B, f32>(inputs, value, upstream, wanted),
        }
    }
}

fn forward_in<B: Host, T: HostElement>(
    operands: &ScoreInputs<B>,
    value: &FloatTensor<B>,
) -> Results<B> {
    let readable = Readable::<B>::new::<T>(operands, value);
    let problem = readable.problem;
    let mut output = vec![T::default(); problem.output_elements()];
    let mut logsumexp = vec![T::Real::default(); problem.query_rows()];
    let execution = Execution::available();
    let inputs = readable.inputs::<T>();
    let Problem {
        batch,
        heads_q,
        len_q,
        dim_v,
        ..
    } = problem;
    let shape = [batch, heads_q, len_q, dim_v];
    let order = Order::of::<B, T>(&operands.query);
    let rows = order.rows(&mut output, shape);
    tiled::forward(&inputs, rows, &mut logsumexp, execution).unwrap_or_else(refuse);
    (
        order.tensor::<B, T>(output, shape),
        B::float_tensor(logsumexp, Shape::new([batch, heads_q, len_q])),
    )
}

fn backward_in<B: Host, T: HostElement>(
    operands: &ScoreInputs<B>,
    value_operand: &FloatTensor<B>,
    upstream: Upstream<B>,
    wanted: Wanted,
) -> Gradients<B> {
    let readable = Readable::<B>::new::<T>(operands, value_operand);
    let problem = readable.problem;
    let inputs = readable.inputs::<T>();
    let output = with_rows::<B, T>(&upstream.output);
    let output_gradient = with_rows::<B, T>(&upstream.output_gradient);
    let logsumexp = row_major::<B, T::Real>(&upstream.logsumexp);
    let logsumexp_gradient = row_major::<B, T::Real>(&upstream.logsumexp_gradient);
    let upstream = tiled::Upstream {
        output: rows::<B, T>(&output),
        logsumexp: elements::<B, T::Real>(&logsumexp),
        output_gradient: rows::<B, T>(&output_gradient),
        logsumexp_gradient: Some(elements::<B, T::Real>(&logsumexp_gradient)),
    };

    let zeros = |wanted: bool, count| wanted.then(|| vec![T::default(); count]);
    let wide_zeros = |wanted: bool, like: &Option<FloatTensor<B>>| {
        let like = like.as_ref().filter(|_| wanted)?;
        Some(vec![T::Real::default(); like.shape().num_elements()])
    };
    let mut query = zeros(wanted.query, problem.query_elements());
    let mut key = zeros(wanted.key, problem.key_elements());
    let mut value = zeros(wanted.value, problem.value_elements());
    let mut bias = wide_zeros(wanted.bias, &readable.bias);
    let mut distance_bias = wide_zeros(wanted.distance_bias, &readable.distance_bias);
    let mut sinks = wide_zeros(wanted.sinks, &readable.sinks);
    let gradients = tiled::Gradients {
        q: query
            .as_deref_mut()
            .map(|data| Order::of::<B, T>(&operands.query).rows(data, shape_of(&operands.query))),
        k: key
            .as_deref_mut()
            .map(|data| Order::of::<B, T>(&operands.key).rows(data, shape_of(&operands.key))),
        v: value
            .as_deref_mut()
            .map(|data| Order::of::<B, T>(value_operand).rows(data, shape_of(value_operand))),
        bias: bias.as_deref_mut(),
        distance_bias: distance_bias.as_deref_mut(),
        sinks: sinks.as_deref_mut(),
    };
    let execution = Execution::available();
    tiled::backward(&inputs, &upstream, gradients, execution).unwrap_or_else(refuse);

    let narrow = |elements: Option<Vec<T>>, like: &FloatTensor<B>| {
        let tensor = |elements| Order::of::<B, T>(like).tensor::<B, T>(elements, shape_of(like));
        OptionalFloat::from_option(elements.map(tensor))
    };
    let wide = |elements: Option<Vec<T::Real>>, like: &OptionalFloat<B>| {
        let gradient = elements.zip(like.as_ref()).map(|(elements, like)| {
            let gradient = B::float_tensor(elements, like.shape());
            in_dtype::<B>(gradient, like.dtype())
        });
        OptionalFloat::from_option(gradient)
    };
    Gradients {
        query: narrow(query, &operands.query),
        key: narrow(key, &operands.key),
        value: narrow(value, value_operand),
        bias: wide(bias, &operands.bias),
        distance_bias: wide(distance_bias, &operands.distance_bias),
        sinks: wide(sinks, &operands.sinks),
    }
}

fn shape_of<P: TensorMetadata>(tensor: &P) -> [usize; 4] {
    tensor.shape().dims()
}

/// How a `[batch, heads, len, dim]` tensor lies in memory.
///
/// Results lie as their operands do: `[batch, len, heads, dim]` comes from a model that has split heads and will merge them, which
/// then needs no copy.
#[derive(Clone, Copy)]
enum Order {
    Heads,
    Rows,
}

impl Order {
    fn of<B: Host, T: Plain>(tensor: &FloatTensor<B>) -> Self {
        match B::floats::<T>(tensor) {
            Some((_, strides)) if strides[1] < strides[2] => Self::Rows,
            _ => Self::Heads,
        }
    }

    /// The rows of a new tensor.
    fn rows<T>(self, data: &mut [T], [_, heads, len, dim]: [usize; 4]) -> RowsMut<'_, T> {
        match self {
            Self::Heads => RowsMut::contiguous(data, heads, len, dim),
            Self::Rows => RowsMut::new(data, [len * heads * dim, dim, heads * dim]),
        }
    }

    /// The tensor whose rows were written.
    fn tensor<B: Host, T: Plain>(
        self,
        data: Vec<T>,
        [batch, heads, len, dim]: [usize; 4],
    ) -> FloatTensor<B> {
        match self {
            Self::Rows if !data.is_empty() => {
                let merged = B::float_tensor(data, Shape::new([batch, len, heads, dim]));
                B::float_swap_dims(merged, 1, 2)
            }
            _ => B::float_tensor(data, Shape::new([batch, heads, len, dim])),
        }
    }
}

/// The public functions check every shape, so this says that one of their checks is missing.
fn refuse(error: KernelError) {
    panic!("attention: {error}");
}

/// Operands that can be read as slices; those that could not were copied.
struct Readable<B: Backend> {
    problem: Problem,
    query: FloatTensor<B>,
    key: FloatTensor<B>,
    value: FloatTensor<B>,
    bias: Option<FloatTensor<B>>,
    distance_bias: Option<FloatTensor<B>>,
    sinks: Option<FloatTensor<B>>,
    visible_blocks: Option<BoolTensor<B>>,
    masked: Option<BoolTensor<B>>,
    key_lengths: Option<Vec<usize>>,
    query_offsets: Option<Vec<i64>>,
    segments: Option<[Vec<i64>; 2]>,
    scalars: AttentionScalars,
}

impl<B: Host> Readable<B> {
    fn new<T: HostElement>(operands: &ScoreInputs<B>, value: &FloatTensor<B>) -> Self {
        let [batch, heads_q, len_q, dim_qk] = operands.query.shape().dims::<4>();
        let [_, heads_kv, len_kv, dim_v] = value.shape().dims::<4>();
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
            problem: Problem {
                batch,
                heads_q,
                heads_kv,
                len_q,
                len_kv,
                dim_qk,
                dim_v,
            },
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
                // As in the composed body, for those who call without a check: a length beyond the keys hides nothing, a
                // negative one everything.
                let length = |length: i64| usize::try_from(length).unwrap_or(0).min(len_kv);
                B::ints(lengths).into_iter().map(length).collect()
            }),
            query_offsets: query_offsets.as_ref().map(|offsets| {
                // As in the blockwise body, for those who call without a check.
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

    fn inputs<T: HostElement>(&self) -> tiled::Inputs<'_, T> {
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

/// What `Readable` and its helpers have made sure of.
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
    let shape = tensor.shape();
    let mut expected = 1;
    let contiguous = B::floats::<R>(&tensor).is_some_and(|(_, strides)| {
        (0..strides.len()).rev().all(|axis| {
            let fits = shape[axis] == 1 || strides[axis] == expected;
            expected *= shape[axis];
            fits
        })
    });
    if contiguous {
        tensor
    } else {
        B::copy_floats(&tensor)
    }
}

/// The elements of a tensor that [`row_major`] has returned.
pub(crate) fn elements<B: Host, R: Plain>(tensor: &FloatTensor<B>) -> &[R] {
    let (data, _) = B::floats::<R>(tensor).expect(READABLE);
    &data[..tensor.shape().num_elements()]
}

fn in_dtype<B: Backend>(tensor: FloatTensor<B>, dtype: DType) -> FloatTensor<B> {
    if tensor.dtype() == dtype {
        tensor
    } else {
        B::float_cast(tensor, FloatDType::from(dtype))
    }
}
