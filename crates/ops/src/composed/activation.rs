//! Bias, activation and gate between linear layers, by plain tensor operations.

use burn::{
    backend::{Backend, TensorMetadata, get_or_init_device_settings, tensor::FloatTensor},
    tensor::{DType, FloatDType, Shape},
};
use burn_attn_kernels_cpu::tiled::Activation;

use super::{
    dtype::{cast, float_dtype},
    part::narrow,
};
use crate::backend::{AttentionOps, OptionalFloat};

/// See [`activate`](crate::activate). In f32, the backend may have a kernel.
pub(crate) fn activate<B: AttentionOps>(
    x: FloatTensor<B>,
    bias: OptionalFloat<B>,
    activation: Activation,
    gated: bool,
) -> FloatTensor<B> {
    if needs_f32(x.dtype(), activation, gated) {
        let dtype = float_dtype(x.dtype());
        let wide = |tensor| cast::<B>(tensor, FloatDType::F32);
        return cast::<B>(
            B::activate(wide(x), bias.map(wide), activation, gated),
            dtype,
        );
    }
    let x = biased::<B>(x, bias);
    if !gated {
        return function::<B>(x, activation);
    }
    let [gate, up] = halves::<B>(x);
    let up = match activation {
        Activation::ClampedQuickGelu => clamped_up::<B>(up),
        _ => up,
    };
    B::float_mul(function::<B>(gate, activation), up)
}

/// The gradient of `x` from the gradient of [`activate`](crate::activate)'s result.
pub(crate) fn activate_backward<B: AttentionOps>(
    x: FloatTensor<B>,
    bias: OptionalFloat<B>,
    gradient: FloatTensor<B>,
    activation: Activation,
    gated: bool,
) -> FloatTensor<B> {
    if needs_f32(x.dtype(), activation, gated) {
        let dtype = float_dtype(x.dtype());
        let wide = |tensor| cast::<B>(tensor, FloatDType::F32);
        let (x, bias, gradient) = (wide(x), bias.map(wide), wide(gradient));
        return cast::<B>(
            B::activate_backward(x, bias, gradient, activation, gated),
            dtype,
        );
    }
    let x = biased::<B>(x, bias);
    if !gated {
        return times_derivative::<B>(gradient, x, activation);
    }
    let [gate, up] = halves::<B>(x);
    let of_up = B::float_mul(gradient.clone(), function::<B>(gate.clone(), activation));
    let (up, of_up) = match activation {
        Activation::ClampedQuickGelu => {
            let of_up = up_to_limit::<B>(of_up, B::float_abs(up.clone()));
            (clamped_up::<B>(up), of_up)
        }
        _ => (up, of_up),
    };
    let of_gate = times_derivative::<B>(B::float_mul(gradient, up), gate, activation);
    B::float_cat(vec![of_gate, of_up], 1)
}

/// Whether half precision would round intermediate results: in bf16, `1 + erf(−2)` is 1/256 instead of 0.00468.
fn needs_f32(dtype: DType, activation: Activation, gated: bool) -> bool {
    let is_half = matches!(dtype, DType::F16 | DType::BF16);
    is_half && (gated || !matches!(activation, Activation::Identity | Activation::Relu))
}

/// `x + bias`
fn biased<B: Backend>(x: FloatTensor<B>, bias: OptionalFloat<B>) -> FloatTensor<B> {
    let [_, width] = x.shape().dims::<2>();
    match bias.into_option() {
        Some(bias) => B::float_add(x, B::float_reshape(bias, Shape::new([1, width]))),
        None => x,
    }
}

/// The columns of the gate, and those that it is multiplied with.
fn halves<B: Backend>(x: FloatTensor<B>) -> [FloatTensor<B>; 2] {
    let [_, width] = x.shape().dims::<2>();
    [0..width / 2, width / 2..width].map(|columns| narrow::<B>(x.clone(), 1, &columns))
}

/// What the clamped gate is multiplied with.
fn clamped_up<B: Backend>(up: FloatTensor<B>) -> FloatTensor<B> {
    let (low, high) = ((-Activation::LIMIT).into(), Activation::LIMIT.into());
    B::float_add_scalar(B::float_clamp(up, low, high), 1.0.into())
}

/// The activation alone.
fn function<B: Backend>(x: FloatTensor<B>, activation: Activation) -> FloatTensor<B> {
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

/// `gradient`, but 0 where `x` is above the limit of clamped functions.
fn up_to_limit<B: Backend>(gradient: FloatTensor<B>, x: FloatTensor<B>) -> FloatTensor<B> {
    let dtype = get_or_init_device_settings::<B>(&x.device()).bool_dtype;
    let above = B::float_greater_elem(x, Activation::LIMIT.into(), dtype);
    B::float_mask_fill(gradient, above, 0.0.into())
}

/// `gradient · activation'(x)`
fn times_derivative<B: Backend>(
    gradient: FloatTensor<B>,
    x: FloatTensor<B>,
    activation: Activation,
) -> FloatTensor<B> {
    use core::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};
    match activation {
        Activation::Identity => gradient,
        Activation::Relu => B::relu_backward(x, gradient),
        Activation::ReluSquared => {
            let gradient = B::relu_backward(x.clone(), gradient);
            B::float_mul(gradient, B::float_mul_scalar(B::relu(x), 2.0.into()))
        }
        // Φ(x) + x · φ(x), the distribution function and the density of the normal distribution.
        Activation::Gelu => {
            let erf = B::float_erf(B::float_mul_scalar(x.clone(), FRAC_1_SQRT_2.into()));
            let distribution =
                B::float_mul_scalar(B::float_add_scalar(erf, 1.0.into()), 0.5.into());
            // Beyond ±39 the density underflows even in f64, and ∞ · 0 is NaN.
            let x = B::float_clamp(x, (-39.0).into(), 39.0.into());
            let square = B::float_mul(x.clone(), x.clone());
            let density = B::float_mul_scalar(
                B::float_exp(B::float_mul_scalar(square, (-0.5).into())),
                (0.5 * FRAC_2_SQRT_PI * FRAC_1_SQRT_2).into(),
            );
            let derivative = B::float_add(distribution, B::float_mul(x, density));
            B::float_mul(gradient, derivative)
        }
        // With (1 + tanh(u)) / 2 = sigmoid(2 · u).
        Activation::GeluTanh => {
            let factor = 2.0 * FRAC_2_SQRT_PI * FRAC_1_SQRT_2;
            // Beyond ±22 the sigmoid is 0 or 1.
            let x = B::float_clamp(x, (-22.0).into(), 22.0.into());
            let square = B::float_mul(x.clone(), x.clone());
            let of_square = |cube: f64| {
                let scaled = B::float_mul_scalar(square.clone(), (cube * factor).into());
                B::float_mul(B::float_add_scalar(scaled, factor.into()), x.clone())
            };
            of_sigmoid::<B>(gradient, of_square(0.044715), of_square(3.0 * 0.044715))
        }
        Activation::QuickGelu => {
            let y = B::float_mul_scalar(x, Activation::QUICK.into());
            of_swish::<B>(gradient, y)
        }
        Activation::Silu => of_swish::<B>(gradient, x),
        Activation::ClampedQuickGelu => {
            let gradient = up_to_limit::<B>(gradient, x.clone());
            let clamped = B::float_clamp_max(x, Activation::LIMIT.into());
            times_derivative::<B>(gradient, clamped, Activation::QuickGelu)
        }
    }
}

/// `gradient` times the derivative of `x · sigmoid(factor · x)`, where `y = factor · x`.
fn of_swish<B: Backend>(gradient: FloatTensor<B>, y: FloatTensor<B>) -> FloatTensor<B> {
    // Beyond ±750 the sigmoid is 0 or 1.
    let y = B::float_clamp(y, (-750.0).into(), 750.0.into());
    of_sigmoid::<B>(gradient, y.clone(), y)
}

/// `gradient` times the derivative of `x · sigmoid(y)`, where `slope = x · y'`: `s · (1 + slope · (1 − s))`.
fn of_sigmoid<B: Backend>(
    gradient: FloatTensor<B>,
    y: FloatTensor<B>,
    slope: FloatTensor<B>,
) -> FloatTensor<B> {
    let s = B::sigmoid(y.clone());
    // 1 − s without cancellation.
    let rest = B::sigmoid(B::float_neg(y));
    let factor = B::float_add_scalar(B::float_mul(slope, rest), 1.0.into());
    B::float_mul(gradient, B::float_mul(s, factor))
}
