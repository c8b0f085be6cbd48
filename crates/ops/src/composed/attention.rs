//! Attention and its weights, with all scores of the operands at once.

use burn::{
    backend::{
        Backend, TensorMetadata, get_or_init_device_settings,
        tensor::{BoolTensor, FloatTensor},
    },
    tensor::{FloatDType, Shape},
};

use super::{
    dropout::DropoutRows,
    dtype::{cast, expand, float_dtype, least, reshape, statistics_dtype},
    part::{Part, aligned},
    scores::{Terms, scores, times, zero_where},
};
use crate::backend::{OptionalFloat, Results, ScoreInputs};

/// Output and logsumexp; see [`AttentionOps::fused_attention`](crate::backend::AttentionOps::fused_attention).
pub(crate) fn forward<B: Backend>(inputs: ScoreInputs<B>, value: FloatTensor<B>) -> Results<B> {
    let dtype = float_dtype(inputs.query.dtype());
    forward_in::<B>(inputs, value, dtype)
}

/// [`forward`] with an output in `dtype`.
pub(crate) fn forward_in<B: Backend>(
    inputs: ScoreInputs<B>,
    value: FloatTensor<B>,
    dtype: FloatDType,
) -> Results<B> {
    let p = inputs.problem(&value);
    if inputs.query.shape().num_elements() == 0 || p.len_kv == 0 {
        return without_scores::<B>(inputs, &value, dtype);
    }
    let rows = DropoutRows::<B>::of(&inputs);
    let whole = Part::whole(p.len_q, p.len_kv);
    let inputs = aligned::<B>(inputs);
    let (output, logsumexp) = of_part::<B>(inputs, value, rows.as_ref(), &whole);
    (cast::<B>(output, dtype), logsumexp)
}

/// The results of a call without scores, the output in `dtype`: without keys, the logsumexp of a row is its sink.
pub(crate) fn without_scores<B: Backend>(
    inputs: ScoreInputs<B>,
    value: &FloatTensor<B>,
    dtype: FloatDType,
) -> Results<B> {
    let device = inputs.query.device();
    let p = inputs.problem(value);
    let row_shape = Shape::new([p.batch, p.heads_q, p.len_q]);
    let logsumexp = match inputs.sinks.into_option() {
        Some(sinks) if row_shape.num_elements() > 0 => {
            let sinks = B::float_reshape(sinks, Shape::new([1, p.heads_q, 1]));
            B::float_expand(sinks, row_shape)
        }
        _ => {
            let statistics = statistics_dtype(dtype);
            B::float_full(row_shape, f64::NEG_INFINITY.into(), &device, statistics)
        }
    };
    let output = Shape::new([p.batch, p.heads_q, p.len_q, p.dim_v]);
    (B::float_zeros(output, &device, dtype), logsumexp)
}

/// Output `[batch, heads_q, queries, dim_v]` in the dtype of the statistics, and logsumexp `[batch, heads_q, queries]`, of the
/// [`aligned`] operands of one part, as if there were no other keys.
pub(crate) fn of_part<B: Backend>(
    inputs: ScoreInputs<B>,
    value: FloatTensor<B>,
    rows: Option<&DropoutRows<B>>,
    part: &Part,
) -> Results<B> {
    let statistics = statistics_dtype(float_dtype(inputs.query.dtype()));
    let dropout = inputs.scalars.dropout;
    let p = inputs.problem(&value);
    let sinks = inputs.sinks.clone();
    // The other terms are freed here.
    let (
        scores,
        Terms {
            unseen,
            rows_without_keys,
            ..
        },
    ) = scores::<B>(inputs, part, statistics);
    let value = zero_where::<B>(cast::<B>(value, statistics), unseen);
    let row = Exponentials::<B>::new(scores, sinks);
    let logsumexp = B::float_add(row.maximum, B::float_log(row.sum.clone()));
    let logsumexp = B::float_mask_fill(logsumexp, row.without_term, f64::NEG_INFINITY.into());

    let exponentials = match rows {
        Some(rows) => B::float_mul(row.tensor, rows.kept(part, statistics)),
        None => row.tensor,
    };
    // The heads that share a key/value head are rows of one product, so nothing is repeated.
    let grouped = p.heads_q / p.heads_kv * p.len_q;
    let grouped = Shape::new([p.batch, p.heads_kv, grouped, p.len_kv]);
    let output = times::<B>(reshape::<B>(exponentials, grouped), value);
    let output = reshape::<B>(output, Shape::new([p.batch, p.heads_q, p.len_q, p.dim_v]));
    let output = B::float_div(output, row.sum);
    // Scaling the output touches `dim_v` numbers per row; scaling the kept weights would touch `len_kv`.
    let output = match dropout {
        Some(dropout) => B::float_mul_scalar(output, dropout.kept_scale().into()),
        None => output,
    };
    let output = zero_where::<B>(output, rows_without_keys);
    let row_shape = Shape::new([p.batch, p.heads_q, p.len_q]);
    (output, B::float_reshape(logsumexp, row_shape))
}

/// The weights; see [`attention_weights`](crate::attention_weights).
pub(crate) fn weights<B: Backend>(inputs: ScoreInputs<B>) -> FloatTensor<B> {
    let dtype = float_dtype(inputs.query.dtype());
    let [batch, heads_q, len_q, _] = inputs.query.shape().dims::<4>();
    let len_kv = inputs.key.shape().dims::<4>()[2];
    let shape = Shape::new([batch, heads_q, len_q, len_kv]);
    if shape.num_elements() == 0 {
        return B::float_zeros(shape, &inputs.query.device(), dtype);
    }
    weights_of_part::<B>(aligned::<B>(inputs), &Part::whole(len_q, len_kv))
}

/// The weights of the [`aligned`] operands of a part with all keys.
pub(crate) fn weights_of_part<B: Backend>(inputs: ScoreInputs<B>, part: &Part) -> FloatTensor<B> {
    let dtype = float_dtype(inputs.query.dtype());
    let sinks = inputs.sinks.clone();
    let (scores, _) = scores::<B>(inputs, part, statistics_dtype(dtype));
    let Exponentials { tensor, sum, .. } = Exponentials::<B>::new(scores, sinks);
    cast::<B>(B::float_div(tensor, sum), dtype)
}

/// `exp(scores − maximum)` and the sums of its rows.
struct Exponentials<B: Backend> {
    /// `[batch, heads_q, len_q, len_kv]`
    tensor: FloatTensor<B>,
    /// `[batch, heads_q, len_q, 1]`, finite
    maximum: FloatTensor<B>,
    /// `[batch, heads_q, len_q, 1]`, sinks included; 1 for a row without a term.
    sum: FloatTensor<B>,
    /// `[batch, heads_q, len_q, 1]`: rows without a term.
    without_term: BoolTensor<B>,
}

impl<B: Backend> Exponentials<B> {
    /// `sinks`: `[heads_q]`
    fn new(scores: FloatTensor<B>, sinks: OptionalFloat<B>) -> Self {
        let bool_dtype = get_or_init_device_settings::<B>(&scores.device()).bool_dtype;
        let [_, heads_q, ..] = scores.shape().dims::<4>();
        // The result does not depend on the maximum, so the maximum needs no gradient. A row that sees nothing has a maximum
        // of −∞; any finite number in place of −∞ makes every exponential exactly 0 instead of NaN.
        let maximum = B::float_max_dim(B::float_detach(scores.clone()), 3);
        let sinks = sinks.into_option().map(|sinks| {
            let sinks = B::float_reshape(sinks, Shape::new([1, heads_q, 1, 1]));
            expand::<B>(sinks, &maximum.shape())
        });
        let maximum = match sinks.clone() {
            Some(sinks) => larger::<B>(maximum, B::float_detach(sinks)),
            None => maximum,
        };
        let least = least(float_dtype(maximum.dtype()));
        let maximum = B::float_clamp_min(maximum, least.into());
        let exponentials = B::float_exp(B::float_sub(scores, maximum.clone()));
        let sum = B::float_sum_dim(exponentials.clone(), 3);
        let sum = match sinks {
            Some(sinks) => B::float_add(sum, B::float_exp(B::float_sub(sinks, maximum.clone()))),
            None => sum,
        };
        // A row with a term has a sum of about 1 or more, but not exactly: fusion may compute the scores twice, with different
        // rounding, whose exponential is 0 only if large scores differ by more than 87. A NaN is not 0.
        let without_term = B::float_equal_elem(sum.clone(), 0.0.into(), bool_dtype);
        Self {
            tensor: exponentials,
            maximum,
            sum: B::float_mask_fill(sum, without_term.clone(), 1.0.into()),
            without_term,
        }
    }
}

/// The elementwise maximum of two tensors of one shape; a NaN in the first is kept.
fn larger<B: Backend>(first: FloatTensor<B>, second: FloatTensor<B>) -> FloatTensor<B> {
    let bool_dtype = get_or_init_device_settings::<B>(&first.device()).bool_dtype;
    let lower = B::float_lower(first.clone(), second.clone(), bool_dtype);
    B::float_mask_where(first, lower, second)
}
