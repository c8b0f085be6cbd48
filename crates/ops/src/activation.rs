//! Bias, activation and gate between the linear layers of a feed-forward network.

use burn::{
    backend::{Backend, Dispatch, TensorMetadata, tensor::FloatTensor},
    tensor::{DType, FloatDType, Shape, Tensor},
};
pub use burn_attn_kernels_cpu::tiled::Activation;

use crate::{
    AttentionOps, OptionalFloat,
    composed::{cast, float_dtype},
};

pub(crate) mod backward;

/// `activation(x + bias)`. If `gated`, `x` is `[gate | up]` and the result is `activation(gate + bias) · (up + bias)`, each
/// half with its half of the bias.
///
/// The CPU backends compute f32 in vectors, on all cores: outside training in one pass over memory, on flex in place if nothing
/// else holds `x` and there is no gate. Training keeps no more than `x`, and computes its gradient in one such pass.
///
/// # Shapes
///
/// - `x`: `[rows, columns]`, gated `[rows, 2 · columns]`
/// - `bias`: as wide as `x`; one of another type is cast to that of `x`
/// - output: `[rows, columns]`
///
/// # Panics
///
/// When the width of the bias differs from that of `x`, or a gated `x` has an odd width.
///
/// # Cost
///
/// A few operations per number, one exponential or error function for most activations.
///
/// # Source
///
/// Gated: "GLU variants improve transformer" (arXiv:2002.05202), equation 5; the variants of [`Activation`] name theirs.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_attn_ops::{Activation, activate};
///
/// let device = Device::default();
/// let x = Tensor::<2>::from_data([[-3.0, 0.5, 2.0, 4.0]], &device);
/// let y = activate(x, None, Activation::Relu, true);
/// assert_eq!(y.into_data().to_vec::<f32>().unwrap(), [0.0, 2.0]);
/// ```
pub fn activate(
    x: Tensor<2>,
    bias: Option<Tensor<1>>,
    activation: Activation,
    gated: bool,
) -> Tensor<2> {
    let bias = bias.map(|bias| floats(bias, x.dtype()));
    let [rows, width] = x.dims();
    if let Some(bias) = &bias {
        assert!(
            bias.dims() == [width],
            "activate: bias {:?} does not fit x {:?}",
            bias.dims(),
            x.dims()
        );
    }
    assert!(
        !gated || width.is_multiple_of(2),
        "activate: the gated x {:?} has an odd number of columns",
        x.dims()
    );
    if rows == 0 || width == 0 {
        let columns = if gated { width / 2 } else { width };
        return Tensor::zeros([rows, columns], (&x.device(), x.dtype()));
    }
    let bias = OptionalFloat::from_option(bias.map(Tensor::into_dispatch));
    let y = <Dispatch as AttentionOps>::activate(x.into_dispatch(), bias, activation, gated);
    Tensor::from_dispatch(y)
}

/// `bias` in this `dtype`, dequantised if it is quantised: backends add up tensors of one type alone.
pub(crate) fn floats(bias: Tensor<1>, dtype: DType) -> Tensor<1> {
    match bias.dtype() {
        DType::QFloat(_) => bias.dequantize().cast(dtype),
        _ => bias.cast(dtype),
    }
}

/// The same by plain tensor operations.
pub(crate) fn composed<B: AttentionOps>(
    x: FloatTensor<B>,
    bias: OptionalFloat<B>,
    activation: Activation,
    gated: bool,
) -> FloatTensor<B> {
    if needs_f32(x.dtype(), activation, gated) {
        let dtype = float_dtype(x.dtype());
        let (x, bias) = in_f32::<B>(x, bias);
        return cast::<B>(B::activate(x, bias, activation, gated), dtype);
    }
    let [rows, width] = x.shape().dims::<2>();
    let x = match bias.into_option() {
        Some(bias) => B::float_add(x, B::float_reshape(bias, Shape::new([1, width]))),
        None => x,
    };
    if !gated {
        return function::<B>(x, activation);
    }
    // Split like two heads, without copies.
    let parts = B::split_heads(
        B::float_reshape(x, Shape::new([1, rows, width])),
        vec![1, 1],
    );
    let mut parts = parts.into_iter();
    let (Some(gate), Some(up)) = (parts.next(), parts.next()) else {
        unreachable!("there is one part per entry")
    };
    let up = match activation {
        Activation::ClampedQuickGelu => {
            let (low, high) = ((-Activation::LIMIT).into(), Activation::LIMIT.into());
            B::float_add_scalar(B::float_clamp(up, low, high), 1.0.into())
        }
        _ => up,
    };
    let y = B::float_mul(function::<B>(gate, activation), up);
    B::float_reshape(y, Shape::new([rows, width / 2]))
}

/// Whether there are operations between the operands and the result that half precision would round: in bf16, one bit is left of `1 + erf(−2)`,
/// 1/256 instead of 0.00468.
fn needs_f32(dtype: DType, activation: Activation, gated: bool) -> bool {
    let is_half = matches!(dtype, DType::F16 | DType::BF16);
    is_half && (gated || !matches!(activation, Activation::Identity | Activation::Relu))
}

/// The operands in f32.
fn in_f32<B: Backend>(
    x: FloatTensor<B>,
    bias: OptionalFloat<B>,
) -> (FloatTensor<B>, OptionalFloat<B>) {
    let wide = |tensor| cast::<B>(tensor, FloatDType::F32);
    let bias = OptionalFloat::from_option(bias.into_option().map(wide));
    (wide(x), bias)
}

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
