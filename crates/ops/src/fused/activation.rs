//! Bias, activation and gate between linear layers, over tensors in host memory.

use burn::{
    backend::{TensorMetadata, tensor::FloatTensor},
    tensor::{DType, Shape},
};
use burn_attn_kernels_cpu::tiled::{Activated, Activation, Execution};

use super::readable::{Host, contiguous, elements, row_major};
use crate::{
    AttentionOps, OptionalFloat,
    activation::{backward, composed},
};

/// `activation(x + bias)`, or the gated form, in one pass where the operands are f32 and row-major.
pub(crate) fn activate<B: Host + AttentionOps>(
    x: FloatTensor<B>,
    bias: OptionalFloat<B>,
    activation: Activation,
    gated: bool,
) -> FloatTensor<B> {
    let [rows, width] = x.shape().dims::<2>();
    if activation == Activation::Identity && !gated && bias.as_ref().is_none() {
        return x;
    }
    let in_f32 =
        x.dtype() == DType::F32 && bias.as_ref().is_none_or(|bias| bias.dtype() == DType::F32);
    if !in_f32 {
        return composed::<B>(x, bias, activation, gated);
    }
    let numbers = match bias.as_ref() {
        Some(bias) => contiguous::<B, f32>(bias),
        None => Some(&[][..]),
    };
    let Some(numbers) = numbers else {
        return composed::<B>(x, bias, activation, gated);
    };
    let columns = if gated { width / 2 } else { width };
    let activated = Activated {
        bias: numbers,
        columns,
        activation,
    };
    let execution = Execution::available();
    if !gated {
        return B::changed(x, |x| activated.in_place(x, execution));
    }
    let x = row_major::<B, f32>(&x);
    let mut out = vec![0.0; rows * columns];
    activated.gated(elements::<B, f32>(&x), &mut out, execution);
    B::float_tensor(out, Shape::new([rows, columns]))
}

/// The gradient of `x`, in one pass where the operands are f32 and the bias is contiguous.
pub(crate) fn activate_backward<B: Host + AttentionOps>(
    x: FloatTensor<B>,
    bias: OptionalFloat<B>,
    gradient: FloatTensor<B>,
    activation: Activation,
    gated: bool,
) -> FloatTensor<B> {
    let [rows, width] = x.shape().dims::<2>();
    let numbers = match bias.as_ref() {
        Some(bias) if bias.dtype() == DType::F32 => contiguous::<B, f32>(bias),
        Some(_) => None,
        None => Some(&[][..]),
    };
    let in_f32 = [x.dtype(), gradient.dtype()] == [DType::F32; 2];
    let Some(numbers) = numbers.filter(|_| in_f32) else {
        return backward::composed::<B>(x, bias, gradient, activation, gated);
    };
    let activated = Activated {
        bias: numbers,
        columns: if gated { width / 2 } else { width },
        activation,
    };
    let execution = Execution::available();
    let x = row_major::<B, f32>(&x);
    let x = elements::<B, f32>(&x);
    if !gated {
        return B::changed(gradient, |gradient| {
            activated.backward_in_place(x, gradient, execution)
        });
    }
    let gradient = row_major::<B, f32>(&gradient);
    let mut out = vec![0.0; rows * width];
    activated.backward_gated(x, elements::<B, f32>(&gradient), &mut out, execution);
    B::float_tensor(out, Shape::new([rows, width]))
}
