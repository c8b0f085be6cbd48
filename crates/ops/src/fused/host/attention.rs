//! Attention over tensors in host memory.

use burn::{
    backend::{
        Backend, TensorMetadata,
        tensor::{BoolTensor, FloatTensor},
    },
    tensor::{DType, Element, Shape},
};
use burn_attn_kernels_cpu::{
    Blocks, Broadcast, InputError, Mask, Options, Problem, Segments,
    tiled::{self, Execution, RowsMut},
};

use super::tensors::{
    Host, HostElement, Plain, READABLE, Strided, elements, in_dtype, readable_bools, row_major,
    rows, with_rows,
};
use crate::backend::{
    AttentionScalars, Body, Gradients, MaskInputs, OptionalFloat, RequiredGrads, Results,
    SavedAndGrads, ScoreInputs,
};

/// Whether the kernels support this call, in the precision of the query; the blockwise body takes the others.
pub(super) fn supports<B: Backend>(inputs: &ScoreInputs<B>) -> bool {
    use DType::{BF16, F16, F32, F64};
    inputs.scalars.body == Body::Fastest && matches!(inputs.query.dtype(), F64 | F32 | F16 | BF16)
}

/// Output and logsumexp.
pub(super) fn forward<B: Host, T: HostElement>(
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

/// The required gradients.
pub(super) fn backward<B: Host, T: HostElement>(
    operands: &ScoreInputs<B>,
    value_operand: &FloatTensor<B>,
    saved: SavedAndGrads<B>,
    required: RequiredGrads,
) -> Gradients<B> {
    let readable = Readable::<B>::new::<T>(operands, value_operand);
    let problem = readable.problem;
    let inputs = readable.inputs::<T>();
    let output = with_rows::<B, T>(&saved.output);
    let output_gradient = with_rows::<B, T>(&saved.output_gradient);
    let logsumexp = row_major::<B, T::Real>(&saved.logsumexp);
    let logsumexp_gradient = row_major::<B, T::Real>(&saved.logsumexp_gradient);
    let upstream = tiled::Upstream {
        output: rows::<B, T>(&output),
        logsumexp: elements::<B, T::Real>(&logsumexp),
        output_gradient: rows::<B, T>(&output_gradient),
        logsumexp_gradient: Some(elements::<B, T::Real>(&logsumexp_gradient)),
    };

    let zeros = |required: bool, count| required.then(|| vec![T::default(); count]);
    let wide_zeros = |required: bool, like: &Option<FloatTensor<B>>| {
        let like = like.as_ref().filter(|_| required)?;
        Some(vec![T::Real::default(); like.shape().num_elements()])
    };
    let mut query = zeros(required.query, problem.query_elements());
    let mut key = zeros(required.key, problem.key_elements());
    let mut value = zeros(required.value, problem.value_elements());
    let mut bias = wide_zeros(required.bias, &readable.bias);
    let mut distance_bias = wide_zeros(required.distance_bias, &readable.distance_bias);
    let mut sinks = wide_zeros(required.sinks, &readable.sinks);
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

/// The memory order of a `[batch, heads, len, dim]` tensor.
///
/// Results have the order of their operands: `[batch, len, heads, dim]` comes from a model that has split heads and will
/// merge them, which then needs no copy.
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

/// The public functions check every shape, so an error here means that one of their checks is missing.
fn refuse(error: InputError) {
    panic!("attention: {error}");
}

/// Operands that can be read as slices, copied where necessary.
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
        let problem = operands.problem(value);
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
                // negative length hides everything.
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

    fn inputs<T: HostElement>(&self) -> tiled::Inputs<'_, T> {
        let scalars = self.scalars;
        tiled::Inputs {
            problem: self.problem,
            q: rows::<B, T>(&self.query),
            k: rows::<B, T>(&self.key),
            v: rows::<B, T>(&self.value),
            options: Options {
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
                sinks: self.sinks.as_ref().map(elements::<B, T::Real>),
                softcap: scalars.softcap,
                scale: Some(scalars.scale),
                dropout: scalars.dropout,
            },
            distance_bias: self.distance_bias.as_ref().map(elements::<B, T::Real>),
        }
    }
}

fn broadcast<T>(strided: Option<Strided<'_, T>>, shape: [usize; 4]) -> Broadcast<'_, T> {
    let (data, strides) = strided.expect(READABLE);
    let strides = strides.try_into().expect("the operand has four dimensions");
    Broadcast::strided(data, shape, strides).expect("the strides stay inside the tensor")
}
