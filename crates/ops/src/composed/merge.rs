//! Results over parts of the keys, put together.

use burn::{
    backend::{
        Backend, TensorMetadata, get_or_init_device_settings,
        tensor::{BoolTensor, FloatTensor},
    },
    tensor::Shape,
};

use super::{cast, float_dtype, larger, least};
use crate::Results;

/// The results over all keys, in the dtype of the logsumexps. There is at least one part.
pub(crate) fn merge<B: Backend>(parts: Vec<Results<B>>) -> Results<B> {
    let (first, others) = parts.split_first().expect("there is a part");
    let statistics = float_dtype(first.1.dtype());
    if others.is_empty() {
        return (cast::<B>(first.0.clone(), statistics), first.1.clone());
    }
    // The results do not depend on the maximum, so it needs no gradient. Where every part saw nothing, any finite number in
    // the place of −∞ makes every factor exactly 0 instead of NaN.
    let maximum = others
        .iter()
        .fold(B::float_detach(first.1.clone()), |maximum, (_, next)| {
            larger::<B>(maximum, B::float_detach(next.clone()))
        });
    let sees_nothing = is_minus_infinity::<B>(&maximum);
    let maximum = B::float_mask_fill(maximum, sees_nothing.clone(), least(statistics).into());

    let parts = parts.into_iter().map(|(output, logsumexp)| {
        let [batch, heads, len, dim] = output.shape().dims::<4>();
        let hidden = is_minus_infinity::<B>(&logsumexp);
        let factor = B::float_exp(B::float_sub(logsumexp, maximum.clone()));
        let rows = Shape::new([batch, heads, len, 1]);
        // Selected, not multiplied: zero times NaN would be NaN.
        let hidden = B::bool_reshape(hidden, rows.clone());
        let hidden = B::bool_expand(hidden, Shape::new([batch, heads, len, dim]));
        let output = B::float_mask_fill(cast::<B>(output, statistics), hidden, 0.0.into());
        let weighed = B::float_mul(output, B::float_reshape(factor.clone(), rows));
        (weighed, factor)
    });
    let (output, sum) = parts
        .reduce(|(output, sum), (more, factor)| {
            (B::float_add(output, more), B::float_add(sum, factor))
        })
        .expect("there is a part");
    // A row that sees something has a factor of exp(0).
    let sum = B::float_mask_fill(sum, sees_nothing.clone(), 1.0.into());
    let [batch, heads, len] = sum.shape().dims::<3>();
    let rows = Shape::new([batch, heads, len, 1]);
    let output = B::float_div(output, B::float_reshape(sum.clone(), rows));
    let logsumexp = B::float_add(maximum, B::float_log(sum));
    let logsumexp = B::float_mask_fill(logsumexp, sees_nothing, f64::NEG_INFINITY.into());
    (output, logsumexp)
}

fn is_minus_infinity<B: Backend>(logsumexp: &FloatTensor<B>) -> BoolTensor<B> {
    let bool_dtype = get_or_init_device_settings::<B>(&logsumexp.device()).bool_dtype;
    let least = least(float_dtype(logsumexp.dtype()));
    B::float_lower_elem(logsumexp.clone(), least.into(), bool_dtype)
}
