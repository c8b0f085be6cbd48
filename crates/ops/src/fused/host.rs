//! The kernels of `kernels-cpu` over tensors in host memory.

use burn::{
    backend::{TensorMetadata, tensor::FloatTensor},
    tensor::{DType, Shape, bf16, f16},
};
use burn_attn_kernels_cpu::{
    Problem,
    tiled::{self, Execution, KernelError, RowsMut},
};

use super::{
    AttentionKernels,
    readable::{
        Host, HostElement, Plain, Readable, elements, in_dtype, row_major, rows, with_rows,
    },
};
use crate::{Body, Gradients, OptionalFloat, Results, ScoreInputs, Upstream, Wanted};

/// In the precision of the query.
impl<B: Host> AttentionKernels for B {
    fn supports(inputs: &ScoreInputs<B>, _: &FloatTensor<B>) -> bool {
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
fn refuse(error: KernelError) {
    panic!("attention: {error}");
}
