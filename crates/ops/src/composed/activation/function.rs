//! The activations, and when they are computed in f32.

use burn::{
    backend::{Backend, tensor::FloatTensor},
    tensor::{DType, FloatDType},
};
use burn_attn_kernels_cpu::tiled::Activation;

use crate::{backend::OptionalFloat, composed::dtype::cast};

/// Whether half precision would round intermediate results: in bf16, `1 + erf(−2)` is 1/256 instead of 0.00468.
pub(super) fn needs_f32(dtype: DType, activation: Activation, gated: bool) -> bool {
    let is_half = matches!(dtype, DType::F16 | DType::BF16);
    is_half && (gated || !matches!(activation, Activation::Identity | Activation::Relu))
}

/// The operands in f32.
pub(super) fn to_f32<B: Backend>(
    x: FloatTensor<B>,
    bias: OptionalFloat<B>,
) -> (FloatTensor<B>, OptionalFloat<B>) {
    let wide = |tensor| cast::<B>(tensor, FloatDType::F32);
    let bias = OptionalFloat::from_option(bias.into_option().map(wide));
    (wide(x), bias)
}

pub(super) fn function<B: Backend>(x: FloatTensor<B>, activation: Activation) -> FloatTensor<B> {
    use core::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};
    // x · (1 + y) / 2
    let half_of_one_plus = |x, y| {
        let factor = B::float_mul_scalar(B::float_add_scalar(y, 1.0.into()), 0.5.into());
        B::float_mul(x, factor)
    };
    match activation {
        Activation::Identity => x,
        Activation::Relu => B::relu(x),
        Activation::ReluSquared => {
            let x = B::relu(x);
            B::float_mul(x.clone(), x)
        }
        Activation::Gelu => {
            let scaled = B::float_mul_scalar(x.clone(), FRAC_1_SQRT_2.into());
            half_of_one_plus(x, B::float_erf(scaled))
        }
        // Without Burn's general power.
        Activation::GeluTanh => {
            let factor = FRAC_2_SQRT_PI * FRAC_1_SQRT_2;
            let square = B::float_mul(x.clone(), x.clone());
            let inner = B::float_mul_scalar(square, (0.044715 * factor).into());
            let inner = B::float_mul(B::float_add_scalar(inner, factor.into()), x.clone());
            half_of_one_plus(x, B::float_tanh(inner))
        }
        Activation::QuickGelu => {
            let scaled = B::float_mul_scalar(x.clone(), Activation::QUICK.into());
            B::float_mul(B::sigmoid(scaled), x)
        }
        Activation::Silu => B::float_mul(x.clone(), B::sigmoid(x)),
        Activation::ClampedQuickGelu => {
            let x = B::float_clamp_max(x, Activation::LIMIT.into());
            function::<B>(x, Activation::QuickGelu)
        }
    }
}
