//! A linear layer, also for the single rows of decoding.

use burn::{
    backend::{Backend, Dispatch, tensor::FloatTensor},
    tensor::{DType, Tensor, module},
};

use crate::AttentionOps;

/// `x · weight + bias`.
///
/// For a few rows outside training, the CPU backends read the weight once, as it lies, on all cores; Burn's product is
/// made for many rows. A quantised weight goes to Burn's product of quantised tensors, which the CPU backends compute by
/// making floats of the whole weight.
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
/// When the widths differ.
///
/// # Cost
///
/// `2 · rows · d_input · d_output` operations; for few rows, the time to read the weight.
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
    let ([_, d_input], [d_weight, _]) = (x.dims(), weight.dims());
    assert!(
        d_input == d_weight,
        "linear: x {:?} does not fit weight {:?}",
        x.dims(),
        weight.dims()
    );
    let d_output = weight.dims()[1];
    if let Some(bias) = &bias {
        assert!(
            bias.dims() == [d_output],
            "linear: bias {:?} does not fit weight {:?}",
            bias.dims(),
            weight.dims()
        );
    }
    if matches!(weight.dtype(), DType::QFloat(_)) {
        return module::linear(x, weight, bias);
    }
    let product = <Dispatch as AttentionOps>::product(x.into_dispatch(), weight.into_dispatch());
    let product = Tensor::<2>::from_dispatch(product);
    match bias {
        Some(bias) => product + bias.unsqueeze(),
        None => product,
    }
}

/// Burn's product.
pub(crate) fn product<B: Backend>(x: FloatTensor<B>, weight: FloatTensor<B>) -> FloatTensor<B> {
    B::float_matmul(x, weight)
}
