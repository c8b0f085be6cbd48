//! Scale and softcap, which the dtype of the tensors may not hold.

use core::ops::RangeInclusive;

use burn::{
    backend::{Backend, TensorMetadata, get_or_init_device_settings, tensor::FloatTensor},
    tensor::FloatDType,
};

use super::dtype::float_dtype;

/// `tensor · factor`, in two steps if the dtype does not hold the factor.
pub(crate) fn times_scalar<B: Backend>(tensor: FloatTensor<B>, factor: f64) -> FloatTensor<B> {
    let (least, most) = match float_dtype(tensor.dtype()) {
        FloatDType::F64 => (f64::MIN_POSITIVE, f64::MAX),
        _ => (f32::MIN_POSITIVE.into(), f32::MAX.into()),
    };
    let size = factor.abs();
    if size == 0.0 || (least..=most).contains(&size) {
        return B::float_mul_scalar(tensor, factor.into());
    }
    let root = size.sqrt().clamp(least, most);
    let tensor = B::float_mul_scalar(tensor, root.copysign(factor).into());
    B::float_mul_scalar(tensor, root.into())
}

/// Softcaps by which a score is divided and its tanh multiplied. The tanh of GPU drivers has an absolute error of about 1e-7,
/// which a larger softcap would multiply. The inverse of a smaller softcap may overflow in f32.
const ORDINARY_SOFTCAPS: RangeInclusive<f64> = 1.0 / (1_u64 << 60) as f64..=(1_u64 << 10) as f64;

/// `softcap · tanh(scores / softcap)`, and the ratios `scores / softcap`.
pub(crate) fn cap<B: Backend>(
    scores: FloatTensor<B>,
    softcap: f64,
) -> (FloatTensor<B>, FloatTensor<B>) {
    if ORDINARY_SOFTCAPS.contains(&softcap) {
        // Not a division by a scalar, whose gradient in Burn 0.22.1 rounds the scalar to f32.
        let ratio = B::float_mul_scalar(scores, (1.0 / softcap).into());
        let capped = B::float_mul_scalar(B::float_tanh(ratio.clone()), softcap.into());
        return (capped, ratio);
    }
    let root = softcap.sqrt();
    let twice = |tensor, factor| times_scalar::<B>(times_scalar::<B>(tensor, factor), factor);
    let ratio = twice(scores.clone(), 1.0 / root);
    let capped = twice(B::float_tanh(ratio.clone()), root);
    // Below, the tanh is Taylor's series, to 5e-8 in f32 (and to f64's precision where its square is below epsilon): the error of a
    // driver's tanh may be relative to 1 instead of the ratio, which may underflow.
    let largest = match float_dtype(scores.dtype()) {
        FloatDType::F64 => f64::EPSILON,
        _ => 0.01,
    };
    let bool_dtype = get_or_init_device_settings::<B>(&scores.device()).bool_dtype;
    let square = B::float_mul(ratio.clone(), ratio.clone());
    let below = B::float_lower_elem(square.clone(), largest.into(), bool_dtype);
    let of_square = B::float_mul_scalar(square.clone(), (2.0 / 15.0).into());
    let of_square = B::float_sub_scalar(of_square, (1.0 / 3.0).into());
    let series = B::float_add_scalar(B::float_mul(square, of_square), 1.0.into());
    let series = B::float_mul(scores, series);
    (B::float_mask_where(capped, below, series), ratio)
}

/// The derivative of the hyperbolic tangent, `1 − tanh²(x)`, as `4e / (1 + e)²` with `e = exp(−2 · |x|)`: the difference would
/// cancel where the tangent is near 1.
pub(crate) fn dtanh<B: Backend>(x: FloatTensor<B>) -> FloatTensor<B> {
    let e = B::float_exp(B::float_mul_scalar(B::float_abs(x), (-2.0).into()));
    let sum = B::float_add_scalar(e.clone(), 1.0.into());
    let square = B::float_mul(sum.clone(), sum);
    B::float_div(B::float_mul_scalar(e, 4.0.into()), square)
}
