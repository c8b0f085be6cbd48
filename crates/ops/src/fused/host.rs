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

use super::{Differentiable, Fixed, Gradients, Kernels, Operands, Results, Upstream, Wanted};
use crate::AttentionScalars;

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

    /// The kernels, in the precision that the query asks for.
    fn kernels_of_host() -> Kernels<Self> {
        Kernels {
            forward: forward::<Self>,
            backward: backward::<Self>,
        }
    }
}

/// A number that lies in a tensor as it lies in a slice.
pub(crate) trait Plain: Element + bytemuck::Pod {}
impl<T: Element + bytemuck::Pod> Plain for T {}

/// A float type that both Burn and the kernels know.
pub(crate) trait HostElement: tiled::Element<Real: Plain> + Plain {}
impl<T: tiled::Element<Real: Plain> + Plain> HostElement for T {}

fn forward<B: Host>(operands: &Operands<B>) -> Results<B> {
    match operands.query.dtype() {
        DType::F32 => forward_in::<B, f32>(operands),
        DType::F64 => forward_in::<B, f64>(operands),
        DType::F16 => forward_in::<B, f16>(operands),
        DType::BF16 => forward_in::<B, bf16>(operands),
        dtype => panic!("attention: there is no kernel for {dtype:?}"),
    }
}

fn backward<B: Host>(
    operands: &Operands<B>,
    upstream: Upstream<B>,
    wanted: Wanted,
) -> Gradients<B> {
    match operands.query.dtype() {
        DType::F32 => backward_in::<B, f32>(operands, upstream, wanted),
        DType::F64 => backward_in::<B, f64>(operands, upstream, wanted),
        DType::F16 => backward_in::<B, f16>(operands, upstream, wanted),
        DType::BF16 => backward_in::<B, bf16>(operands, upstream, wanted),
        dtype => panic!("attention: there is no kernel for {dtype:?}"),
    }
}

fn forward_in<B: Host, T: HostElement>(operands: &Operands<B>) -> Results<B> {
    let readable = Readable::<B>::new::<T>(operands);
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
    operands: &Operands<B>,
    upstream: Upstream<B>,
    wanted: Wanted,
) -> Gradients<B> {
    let readable = Readable::<B>::new::<T>(operands);
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
            .map(|data| Order::of::<B, T>(&operands.value).rows(data, shape_of(&operands.value))),
        bias: bias.as_deref_mut(),
        distance_bias: distance_bias.as_deref_mut(),
        sinks: sinks.as_deref_mut(),
    };
    let execution = Execution::available();
    tiled::backward(&inputs, &upstream, gradients, execution).unwrap_or_else(refuse);

    let narrow = |elements: Option<Vec<T>>, like: &FloatTensor<B>| {
        elements.map(|elements| Order::of::<B, T>(like).tensor::<B, T>(elements, shape_of(like)))
    };
    let wide = |elements: Option<Vec<T::Real>>, like: &Option<FloatTensor<B>>| {
        let (elements, like) = elements.zip(like.as_ref())?;
        let gradient = B::float_tensor(elements, like.shape());
        Some(in_dtype::<B>(gradient, like.dtype()))
    };
    Differentiable {
        query: narrow(query, &operands.query),
        key: narrow(key, &operands.key),
        value: narrow(value, &operands.value),
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
    segments: Option<[Vec<i64>; 2]>,
    scalars: AttentionScalars,
}

impl<B: Host> Readable<B> {
    fn new<T: HostElement>(operands: &Operands<B>) -> Self {
        let [batch, heads_q, len_q, dim_qk] = operands.query.shape().dims::<4>();
        let [_, heads_kv, len_kv, dim_v] = operands.value.shape().dims::<4>();
        let Fixed {
            visible_blocks,
            masked,
            key_lengths,
            segments,
            scalars,
        } = &operands.fixed;
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
            value: with_rows::<B, T>(&operands.value),
            bias: operands.bias.clone().map(|bias| {
                let bias = in_dtype::<B>(bias, wide);
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
            segments: segments
                .as_ref()
                .map(|(query, key)| [B::ints(query), B::ints(key)]),
            scalars: *scalars,
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
                causal: scalars.causal,
                window: scalars.window,
                key_lengths: self.key_lengths.as_deref(),
                query_offsets: None,
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
