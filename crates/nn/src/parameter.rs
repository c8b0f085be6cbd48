//! The numbers of a parameter, however stored, and what is computed from them in a wider dtype.

use burn::{
    module::Param,
    tensor::{DType, Device, Tensor, kind::Basic},
};

/// The numbers of a parameter, including its adapter, as floats: `Module::quantize_weights` packs every parameter, and few
/// operations read packed numbers.
pub(crate) fn floats<const D: usize>(parameter: &Param<Tensor<D>>) -> Tensor<D> {
    parameter.val().dequantize()
}

/// The dtype for sums of squares of numbers in `dtype`: at least f32, because f16 overflows at squares of 256.
pub(crate) fn wide(dtype: DType) -> DType {
    match dtype {
        DType::F64 => DType::F64,
        _ => DType::F32,
    }
}

/// The memory of a tensor's numbers (bytes).
pub(crate) fn bytes<const D: usize, K: Basic>(x: &Tensor<D, K>) -> usize {
    x.shape().num_elements() * x.dtype().size()
}

/// Whether tensors of one device can meet those of the other. Devices are equal whether or not they record for autodiff.
pub(crate) fn is_same_device(a: &Device, b: &Device) -> bool {
    a == b && a.is_autodiff() == b.is_autodiff()
}

/// `x / √(mean(x²) + epsilon) · factor` in [`wide`], with the mean over `axes`.
pub(crate) fn rms_norm<const D: usize>(
    x: Tensor<D>,
    axes: &[usize],
    epsilon: f64,
    factor: Tensor<D>,
) -> Tensor<D> {
    let dtype = x.dtype();
    let x = x.cast(wide(dtype));
    let squares = x.clone().square();
    let mean = axes.iter().fold(squares, |mean, &axis| mean.mean_dim(axis));
    (x / (mean + epsilon).sqrt() * factor.cast(wide(dtype))).cast(dtype)
}

/// Rows of a table, which `select` selects.
///
/// In training, a table in half precision is cast to f32 first: the gradient of a row is the sum over all tokens that select it.
/// A bf16 accumulator stops growing once it is 512 times the next addend, and often from 256 times on.
pub(crate) fn select_rows<const D: usize>(
    table: Tensor<2>,
    select: impl FnOnce(Tensor<2>) -> Tensor<D>,
) -> Tensor<D> {
    match table.dtype() {
        dtype @ (DType::F16 | DType::BF16) if table.device().is_autodiff() => {
            select(table.cast(wide(dtype))).cast(dtype)
        }
        _ => select(table),
    }
}
