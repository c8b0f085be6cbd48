//! Bias, activation and gate, forward.

use burn::{
    backend::{Backend, TensorMetadata, tensor::FloatTensor},
    tensor::Shape,
};
use burn_attn_kernels_cpu::tiled::Activation;

use super::function::{function, needs_f32, to_f32};
use crate::{
    backend::OptionalFloat,
    composed::dtype::{cast, float_dtype},
};

/// See [`activate`](crate::activate). `in_f32` and `split_heads` are operations of the backend, which may have kernels and
/// gradient rules.
pub(crate) fn activate<B: Backend>(
    x: FloatTensor<B>,
    bias: OptionalFloat<B>,
    activation: Activation,
    gated: bool,
    in_f32: impl FnOnce(FloatTensor<B>, OptionalFloat<B>) -> FloatTensor<B>,
    split_heads: fn(FloatTensor<B>, Vec<usize>) -> Vec<FloatTensor<B>>,
) -> FloatTensor<B> {
    if needs_f32(x.dtype(), activation, gated) {
        let dtype = float_dtype(x.dtype());
        let (x, bias) = to_f32::<B>(x, bias);
        return cast::<B>(in_f32(x, bias), dtype);
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
    let parts = split_heads(
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
