//! Attention over tensors in host memory.

use burn::{
    backend::{Backend, TensorMetadata, tensor::FloatTensor},
    tensor::Shape,
};
use burn_attn_kernels_cpu::{
    Blocks, Broadcast, FirstKeys, InputError, Mask, Options, Problem, Segments,
    tiled::{self, Captured, Execution, RowsMut, ScoreFunction, VisibleFunction},
};

use super::tensors::{
    Host, HostElement, Plain, READABLE, Strided, elements, readable_bools, row_major, rows,
    strided, with_rows,
};
use crate::{
    backend::{MaskInputs, OptionalInt, RequiredGrads, Results, SavedAndGrads, ScoreInputs},
    composed::cast,
    function::{MaskFunction, captured::Entries},
};

pub(super) fn forward<B: Host, T: HostElement>(
    operands: &ScoreInputs<B>,
    value: &FloatTensor<B>,
) -> Results<B> {
    let readable = Readable::<B>::new::<T>(operands, value);
    let p = readable.problem;
    let mut output = vec![T::default(); p.output_elements()];
    let mut logsumexp = vec![T::Real::default(); p.query_rows()];
    let shape = [p.batch, p.heads_q, p.len_q, p.dim_v];
    let order = Order::of::<B, T>(&operands.query);
    let rows = order.rows(&mut output, shape);
    let functions = readable.functions::<T>();
    let (inputs, execution) = (readable.inputs(&functions), Execution::available());
    tiled::forward(&inputs, rows, &mut logsumexp, execution).unwrap_or_else(refuse);
    (
        order.tensor::<B, T>(output, shape),
        B::float_tensor(logsumexp, Shape::new([p.batch, p.heads_q, p.len_q])),
    )
}

pub(super) fn backward<B: Host, T: HostElement>(
    operands: &ScoreInputs<B>,
    value: &FloatTensor<B>,
    saved: SavedAndGrads<B>,
    required: RequiredGrads,
) -> Vec<FloatTensor<B>> {
    let readable = Readable::<B>::new::<T>(operands, value);
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

    let [query, key, value, bias, distance_bias, sinks, captured] =
        operands.differentiable(value, required);
    let count = |like: &FloatTensor<B>| like.shape().num_elements();
    let mut narrow = [query, key, value].map(|like| {
        let like = like?;
        let (order, shape) = (Order::of::<B, T>(like), like.shape().dims());
        Some((vec![T::default(); count(like)], order, shape))
    });
    let likes = [bias, distance_bias, sinks, captured];
    let mut wide = likes.map(|like| Some(vec![T::Real::default(); count(like?)]));
    let [q, k, v] = narrow.each_mut().map(|rows| {
        rows.as_mut()
            .map(|(data, order, shape)| order.rows(data, *shape))
    });
    let [bias, distance_bias, sinks, captured] = wide.each_mut().map(Option::as_deref_mut);
    let gradients = tiled::Gradients {
        q,
        k,
        v,
        bias,
        distance_bias,
        sinks,
        captured,
    };
    let functions = readable.functions::<T>();
    let (inputs, execution) = (readable.inputs(&functions), Execution::available());
    tiled::backward(&inputs, &upstream, gradients, execution).unwrap_or_else(refuse);

    let narrow = narrow.into_iter().flatten();
    let narrow = narrow.map(|(data, order, shape)| order.tensor::<B, T>(data, shape));
    let wide = wide.into_iter().zip(likes).filter_map(|(data, like)| {
        let gradient = B::float_tensor(data?, like?.shape());
        Some(cast::<B>(gradient, like?.dtype().into()))
    });
    narrow.chain(wide).collect()
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
    operands: ScoreInputs<B>,
    value: FloatTensor<B>,
    key_lengths: Option<Vec<usize>>,
    first_keys: Option<Vec<usize>>,
    query_offsets: Option<Vec<i64>>,
    segments: Option<(Vec<i64>, Vec<i64>)>,
    /// What mask functions have captured.
    integers: Vec<(Vec<i64>, [usize; 4])>,
}

impl<B: Host> Readable<B> {
    fn new<T: HostElement>(operands: &ScoreInputs<B>, value: &FloatTensor<B>) -> Self {
        let problem = operands.problem(value);
        let (len_q, len_kv) = (problem.len_q as i64, problem.len_kv as i64);
        let operands = operands.clone();
        let mask = operands.mask;
        let row_major = |tensor: FloatTensor<B>| row_major::<B, T::Real>(&tensor);
        let ints = |numbers: &OptionalInt<B>| numbers.as_ref().map(B::ints);
        // As in the general bodies, for callers that skip the checks: a length beyond the keys hides nothing, a negative length hides
        // everything, and offsets are clamped to their range.
        let length = |length: i64| length.clamp(0, len_kv) as usize;
        let lengths =
            |numbers| ints(numbers).map(|lengths| lengths.into_iter().map(length).collect());
        let offset = |offset: i64| offset.clamp(-len_q, len_kv);
        Self {
            problem,
            value: with_rows::<B, T>(value),
            key_lengths: lengths(&mask.key_lengths),
            first_keys: lengths(&mask.first_keys),
            query_offsets: ints(&mask.query_offsets)
                .map(|offsets| offsets.into_iter().map(offset).collect()),
            integers: integers(&mask.functions),
            segments: ints(&mask.query_segments).zip(ints(&mask.key_segments)),
            operands: ScoreInputs {
                query: with_rows::<B, T>(&operands.query),
                key: with_rows::<B, T>(&operands.key),
                bias: operands.bias.map(strided::<B, T::Real>),
                distance_bias: operands.distance_bias.map(row_major),
                sinks: operands.sinks.map(row_major),
                captured: operands.captured.map(row_major),
                mask: MaskInputs {
                    visible_blocks: mask.visible_blocks.map(readable_bools::<B>),
                    masked: mask.masked.map(readable_bools::<B>),
                    ..mask
                },
                ..operands
            },
        }
    }

    /// What functions have captured.
    fn functions<T: HostElement>(&self) -> Functions<'_, T::Real> {
        let floats = self.operands.captured.as_ref().map(elements::<B, T::Real>);
        let calls = self.operands.score_function.iter().zip(floats);
        let captured = calls.flat_map(|(call, floats)| {
            call.slots.iter().map(move |slot| {
                let len: usize = slot.shape.iter().product();
                let numbers = &floats[slot.start..slot.start + len];
                match slot.entries {
                    Entries::Distances => Captured::Distances(numbers),
                    _ => Captured::Pairs(contiguous(numbers, slot.shape)),
                }
            })
        });
        let integers = self.integers.iter();
        Functions {
            captured: captured.collect(),
            integers: integers
                .map(|(ints, shape)| contiguous(ints, *shape))
                .collect(),
        }
    }

    fn inputs<'a, T: HostElement>(
        &'a self,
        functions: &'a Functions<'a, T::Real>,
    ) -> tiled::Inputs<'a, T> {
        let operands = &self.operands;
        let (mask, scalars) = (&operands.mask, &operands.scalars);
        let bias = operands.bias.as_ref();
        let segments = self.segments.as_ref();
        let blocks = mask.visible_blocks.as_ref().zip(scalars.block_size);
        let bools = |tensor| broadcast(B::bools(tensor), tensor.shape().dims());
        tiled::Inputs {
            problem: self.problem,
            q: rows::<B, T>(&operands.query),
            k: rows::<B, T>(&operands.key),
            v: rows::<B, T>(&self.value),
            options: Options {
                mask: Mask {
                    by_position: scalars.by_position,
                    first_keys: self.first_keys.as_deref().map(|counts| FirstKeys {
                        counts,
                        causal: scalars.first_keys_are_causal,
                    }),
                    key_lengths: self.key_lengths.as_deref(),
                    query_offsets: self.query_offsets.as_deref(),
                    segments: segments.map(|(queries, keys)| Segments { queries, keys }),
                    blocks: blocks.map(|(table, size)| Blocks {
                        visible: bools(table),
                        size,
                    }),
                    masked: mask.masked.as_ref().map(bools),
                },
                bias: bias.map(|bias| broadcast(B::floats::<T::Real>(bias), bias.shape().dims())),
                sinks: operands.sinks.as_ref().map(elements::<B, T::Real>),
                softcap: scalars.softcap,
                scale: Some(scalars.scale),
                dropout: scalars.dropout,
            },
            distance_bias: operands.distance_bias.as_ref().map(elements::<B, T::Real>),
            score_function: operands.score_function.as_ref().map(|call| ScoreFunction {
                form: call.form.as_deref().expect(SCALAR),
                captured: &functions.captured,
            }),
            visible_function: mask.functions.first().map(|call| VisibleFunction {
                form: call.form.as_deref().expect(SCALAR),
                captured: &functions.integers,
                whole: call.table.as_ref().map(|table| Blocks {
                    visible: contiguous(&table.whole, table.dims),
                    size: table.size,
                }),
            }),
        }
    }
}

const SCALAR: &str = "the call has forms for single numbers";

/// What functions have captured, as kernels read it.
struct Functions<'a, R> {
    captured: Vec<Captured<'a, R>>,
    integers: Vec<Broadcast<'a, i64>>,
}

fn integers(functions: &[MaskFunction]) -> Vec<(Vec<i64>, [usize; 4])> {
    let captured = functions.iter().flat_map(|call| call.captures.ints());
    captured
        .map(|(ints, _)| (ints.to_data().iter().collect(), ints.dims()))
        .collect()
}

fn contiguous<T>(data: &[T], shape: [usize; 4]) -> Broadcast<'_, T> {
    Broadcast::new(data, shape).expect("the tensor has these dimensions")
}

fn broadcast<T>(strided: Option<Strided<'_, T>>, shape: [usize; 4]) -> Broadcast<'_, T> {
    let (data, strides) = strided.expect(READABLE);
    let strides = strides.try_into().expect("the operand has four dimensions");
    Broadcast::strided(data, shape, strides).expect("the strides stay inside the tensor")
}
