//! Linear layers, fast even for the single rows of decoding, and the activations between the layers of a feed-forward network.

use burn::{
    backend::Dispatch,
    tensor::{DType, Tensor, module},
};
pub use burn_attn_kernels_cpu::tiled::Activation;

use crate::backend::AttentionOps;

/// A linear layer: `x · weight + bias`.
///
/// Outside training, the CPU backends read a row-major weight only once, in place and on all cores, for up to 16 rows of f32 or
/// f64; for more rows of f32 see [`activated_linear`]. A quantised weight goes to Burn's product of quantised tensors, for
/// which the CPU backends dequantise the whole weight.
///
/// # Shapes
///
/// - `x`: `[rows, d_input]`
/// - `weight`: `[d_input, d_output]`
/// - `bias`: `[d_output]`
/// - output: `[rows, d_output]`
///
/// # Panics
///
/// When the widths do not match; on the CPU backends also when `x` and the weight differ in dtype, unless the weight is quantised. A
/// bias of another dtype is cast.
///
/// # Cost
///
/// `2 · rows · d_input · d_output` operations; for few rows, the time it takes to read the weight. Without rows, or a width of 0, there are no gradients: not
/// zeros, but `None`.
///
/// PyTorch equivalent: `torch.nn.functional.linear` with the weight transposed.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_attn_ops::linear;
///
/// let device = Device::default();
/// let x = Tensor::<2>::ones([3, 5], &device);
/// let weight = Tensor::<2>::ones([5, 7], &device);
/// let y = linear(x, weight, Some(Tensor::<1>::ones([7], &device)));
/// assert_eq!(y.into_data(), Tensor::<2>::full([3, 7], 6.0, &device).into_data());
/// ```
pub fn linear(x: Tensor<2>, weight: Tensor<2>, bias: Option<Tensor<1>>) -> Tensor<2> {
    activated_linear(x, weight, bias, Activation::Identity, false)
}

/// [`activate`] of `x · weight`: a linear layer and its activation.
///
/// # Shapes
///
/// - `x`: `[rows, d_input]`
/// - `weight`: `[d_input, d_output]`, gated `[d_input, 2 · d_output]`
/// - `bias`: `[d_output]`, gated `[2 · d_output]`
/// - output: `[rows, d_output]`
///
/// # Panics, cost, source
///
/// See [`linear`] and [`activate`]. Outside training, the CPU backends compute both in one pass for 17 or more rows of
/// f32, unless the layer is gated, an operand is not row-major, or the weight has fewer than 2¹² numbers, or more than 2²⁰ for
/// fewer than 128 rows.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_attn_ops::{Activation, activated_linear};
///
/// let device = Device::default();
/// let x = Tensor::<2>::ones([3, 5], &device);
/// let weight = Tensor::<2>::ones([5, 7], &device) * -1.0;
/// let y = activated_linear(x, weight, None, Activation::Relu, false);
/// assert_eq!(y.into_data(), Tensor::<2>::zeros([3, 7], &device).into_data());
/// ```
pub fn activated_linear(
    x: Tensor<2>,
    weight: Tensor<2>,
    bias: Option<Tensor<1>>,
    activation: Activation,
    gated: bool,
) -> Tensor<2> {
    let (of_x, of_weight) = (x.dims(), weight.dims());
    let ([rows, d_input], [d_weight, d_output]) = (of_x, of_weight);
    assert!(
        d_input == d_weight,
        "linear: x {of_x:?} does not fit weight {of_weight:?}"
    );
    if let Some(of_bias) = bias.as_ref().map(Tensor::dims) {
        assert!(
            of_bias == [d_output],
            "linear: bias {of_bias:?} does not fit weight {of_weight:?}"
        );
    }
    // In Burn 0.22.1 such products divide by zero on ndarray.
    if rows == 0 || d_input == 0 || d_output == 0 {
        let product = Tensor::zeros([rows, d_output], (&x.device(), x.dtype()));
        return activate(product, bias, activation, gated);
    }
    if matches!(weight.dtype(), DType::QFloat(_)) {
        return activate(module::linear(x, weight, None), bias, activation, gated);
    }
    assert!(
        !gated || d_output.is_multiple_of(2),
        "linear: the gated weight {of_weight:?} has an odd number of columns"
    );
    let bias = bias.map(|bias| bias.dequantize().cast(x.dtype()).into_dispatch());
    let (x, weight) = (x.into_dispatch(), weight.into_dispatch());
    let y = <Dispatch as AttentionOps>::linear(x, weight, bias.into(), activation, gated);
    Tensor::from_dispatch(y)
}

/// `activation(x + bias)`. If `gated`, `x` is `[gate | up]` and the result is `activation(gate + bias) · (up + bias)`, each
/// half with its half of the bias.
///
/// The CPU backends compute f32 in vectors, on all cores: outside training in one pass over memory, on flex in place if nothing
/// else holds `x` and there is no gate. Training keeps no more than `x`, and computes its gradient in one such pass.
///
/// # Shapes
///
/// - `x`: `[rows, columns]`, gated `[rows, 2 · columns]`
/// - `bias`: as wide as `x`; another dtype is cast to that of `x`
/// - output: `[rows, columns]`
///
/// # Panics
///
/// When the width of the bias differs from that of `x`, or a gated `x` has an odd width.
///
/// # Cost
///
/// A few operations per number, one exponential or error function for most activations. Without numbers there are no gradients, as of [`linear`].
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
    // Backends add tensors of one dtype only.
    let bias = bias.map(|bias| bias.dequantize().cast(x.dtype()));
    let of_x = x.dims();
    let [rows, width] = of_x;
    if let Some(of_bias) = bias.as_ref().map(Tensor::dims) {
        assert!(
            of_bias == [width],
            "activate: bias {of_bias:?} does not fit x {of_x:?}"
        );
    }
    assert!(
        !gated || width.is_multiple_of(2),
        "activate: the gated x {of_x:?} has an odd number of columns"
    );
    if rows == 0 || width == 0 {
        let columns = if gated { width / 2 } else { width };
        return Tensor::zeros([rows, columns], (&x.device(), x.dtype()));
    }
    let bias = bias.map(Tensor::into_dispatch).into();
    let y = <Dispatch as AttentionOps>::activate(x.into_dispatch(), bias, activation, gated);
    Tensor::from_dispatch(y)
}
