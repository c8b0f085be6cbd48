//! The operation made of plain tensor operations: right on every backend, and differentiable by Burn's autodiff.
//!
//! It stores the scores, so its memory grows with `len_q · len_kv`. It is the body of backends without kernels of their
//! own, and a second witness for those that have them.

mod dropout;
mod hidden;
mod scores;

use burn::{
    backend::{
        Backend, TensorMetadata, get_or_init_device_settings,
        tensor::{BoolTensor, FloatTensor},
    },
    tensor::{DType, FloatDType, Shape},
};

use crate::ScoreInputs;
pub(crate) use dropout::factors_of_device;
#[cfg(any(feature = "flex", feature = "ndarray"))]
pub(crate) use dropout::factors_of_host;
use dropout::kept;
use scores::{Scores, stretch};

/// Output and logsumexp; see [`AttentionOps::attention`](crate::AttentionOps::attention).
pub(crate) fn forward<B: Backend>(
    inputs: ScoreInputs<B>,
    value: FloatTensor<B>,
) -> (FloatTensor<B>, FloatTensor<B>) {
    let device = inputs.query.device();
    let dtype = float_dtype(inputs.query.dtype());
    let statistics = statistics_dtype(dtype);
    let dropout = inputs.scalars.dropout;
    let [batch, heads_q, len_q, _] = inputs.query.shape().dims::<4>();
    let [_, heads_kv, len_kv, dim_v] = value.shape().dims::<4>();
    let output_shape = Shape::new([batch, heads_q, len_q, dim_v]);
    let row_shape = Shape::new([batch, heads_q, len_q]);

    if output_shape.num_elements() == 0 || len_kv == 0 {
        // Without keys, a row is its sink.
        let logsumexp = match inputs.sinks.into_option() {
            Some(sinks) if row_shape.num_elements() > 0 => {
                let sinks = B::float_reshape(sinks, Shape::new([1, heads_q, 1]));
                B::float_expand(sinks, row_shape)
            }
            _ => B::float_full(row_shape, f64::NEG_INFINITY.into(), &device, statistics),
        };
        return (B::float_zeros(output_shape, &device, dtype), logsumexp);
    }

    let scores = Scores::new(inputs, statistics);
    let value = scores.without_unseen(cast::<B>(value, statistics));
    let Exponentials {
        tensor: exponentials,
        maximum,
        sum,
        sees_nothing,
    } = Exponentials::new(&scores);
    let logsumexp = B::float_add(maximum, B::float_log(sum.clone()));
    let logsumexp = B::float_mask_fill(logsumexp, sees_nothing, f64::NEG_INFINITY.into());

    let exponentials = match dropout {
        Some(dropout) => B::float_mul(
            exponentials,
            kept::<B>(
                dropout,
                [batch, heads_q, len_q, len_kv],
                &device,
                statistics,
            ),
        ),
        None => exponentials,
    };
    // The heads that share a key/value head are rows of one product: nothing is repeated. One key is no matrix: in Burn
    // 0.22.1 on wgpu, the gradient of a matrix product with a single column that fusion computed mixes up the heads.
    let grouped = Shape::new([batch, heads_kv, heads_q / heads_kv * len_q, len_kv]);
    let exponentials = reshape::<B>(exponentials, grouped);
    let output = match len_kv {
        1 => B::float_mul(exponentials, value),
        _ => B::float_matmul(exponentials, value),
    };
    let output = B::float_div(reshape::<B>(output, output_shape), sum);
    // Scaling what is left touches `dim_v` numbers a row, scaling the kept weights `len_kv`.
    let output = match dropout {
        Some(dropout) => B::float_mul_scalar(output, dropout.kept_scale().into()),
        None => output,
    };
    let output = scores.without_blind(output);
    (
        cast::<B>(output, dtype),
        B::float_reshape(logsumexp, row_shape),
    )
}

/// The weights; see [`AttentionOps::attention_weights`](crate::AttentionOps::attention_weights).
pub(crate) fn weights<B: Backend>(inputs: ScoreInputs<B>) -> FloatTensor<B> {
    let dtype = float_dtype(inputs.query.dtype());
    let [batch, heads_q, len_q, _] = inputs.query.shape().dims::<4>();
    let len_kv = inputs.key.shape().dims::<4>()[2];
    let shape = Shape::new([batch, heads_q, len_q, len_kv]);
    if shape.num_elements() == 0 {
        return B::float_zeros(shape, &inputs.query.device(), dtype);
    }
    let scores = Scores::new(inputs, statistics_dtype(dtype));
    let Exponentials { tensor, sum, .. } = Exponentials::new(&scores);
    cast::<B>(B::float_div(tensor, sum), dtype)
}

/// `exp(scores − maximum)` and what the rows of it add up to.
struct Exponentials<B: Backend> {
    /// `[batch, heads_q, len_q, len_kv]`
    tensor: FloatTensor<B>,
    /// `[batch, heads_q, len_q, 1]`, finite
    maximum: FloatTensor<B>,
    /// `[batch, heads_q, len_q, 1]`, sinks included; 1 for a row without a term.
    sum: FloatTensor<B>,
    /// `[batch, heads_q, len_q, 1]`: rows without a term.
    sees_nothing: BoolTensor<B>,
}

impl<B: Backend> Exponentials<B> {
    fn new(scores: &Scores<B>) -> Self {
        let Scores { tensor, sinks, .. } = scores;
        let bool_dtype = get_or_init_device_settings::<B>(&tensor.device()).bool_dtype;
        // The result does not depend on the maximum, so it needs no gradient. A row that sees nothing has the maximum −∞;
        // any finite number in its place makes every exponential exactly 0 instead of NaN.
        let maximum = B::float_max_dim(B::float_detach(tensor.clone()), 3);
        let sinks = sinks.clone();
        let sinks = sinks.map(|sinks| stretch::<B>(sinks, &maximum.shape()));
        let maximum = match sinks.clone() {
            Some(sinks) => larger::<B>(maximum, B::float_detach(sinks)),
            None => maximum,
        };
        let least = least(float_dtype(tensor.dtype()));
        let maximum = B::float_clamp_min(maximum, least.into());
        let exponentials = B::float_exp(B::float_sub(tensor.clone(), maximum.clone()));
        let sum = B::float_sum_dim(exponentials.clone(), 3);
        let sum = match sinks {
            Some(sinks) => B::float_add(sum, B::float_exp(B::float_sub(sinks, maximum.clone()))),
            None => sum,
        };
        // A row with a term has a sum of about 1 or more: fusion may compute the scores twice, with another rounding. A NaN is
        // not lower.
        let sees_nothing = B::float_lower_elem(sum.clone(), 0.5.into(), bool_dtype);
        Self {
            tensor: exponentials,
            maximum,
            sum: B::float_mask_fill(sum, sees_nothing.clone(), 1.0.into()),
            sees_nothing,
        }
    }
}

/// The larger of two tensors of one shape; a NaN of the first stays.
fn larger<B: Backend>(first: FloatTensor<B>, second: FloatTensor<B>) -> FloatTensor<B> {
    let bool_dtype = get_or_init_device_settings::<B>(&first.device()).bool_dtype;
    let lower = B::float_lower(first.clone(), second.clone(), bool_dtype);
    B::float_mask_where(first, lower, second)
}

/// Half precision is computed in f32.
pub(crate) fn statistics_dtype(dtype: FloatDType) -> FloatDType {
    match dtype {
        FloatDType::F64 => FloatDType::F64,
        _ => FloatDType::F32,
    }
}

/// The least finite number: only −∞ is lower.
pub(crate) fn least(dtype: FloatDType) -> f64 {
    match dtype {
        FloatDType::F64 => f64::MIN,
        _ => f64::from(f32::MIN),
    }
}

fn float_dtype(dtype: DType) -> FloatDType {
    dtype.into()
}

/// Casts only where there is something to cast.
fn cast<B: Backend>(tensor: FloatTensor<B>, dtype: FloatDType) -> FloatTensor<B> {
    if float_dtype(tensor.dtype()) == dtype {
        return tensor;
    }
    B::float_cast(tensor, dtype)
}

/// Reshapes only where there is something to reshape: under autodiff every operation is a node.
fn reshape<B: Backend>(tensor: FloatTensor<B>, shape: Shape) -> FloatTensor<B> {
    if tensor.shape() == shape {
        return tensor;
    }
    B::float_reshape(tensor, shape)
}
