//! The numbers of a parameter, however it is stored, and the type to compute with them.

use burn::{
    module::Param,
    tensor::{DType, Tensor},
};

/// The numbers of a parameter, including its adapter, as floats: `Module::quantize_weights` packs every parameter, and few
/// operations read packed numbers.
pub(crate) fn floats<const D: usize>(parameter: &Param<Tensor<D>>) -> Tensor<D> {
    parameter.val().dequantize()
}

/// The type for sums of squares of numbers of this type: at least f32, because f16 overflows at squares of 256.
pub(crate) fn wide(dtype: DType) -> DType {
    match dtype {
        DType::F64 => DType::F64,
        _ => DType::F32,
    }
}

/// Rows of a table, which `select` selects.
///
/// In training, those of a table in half precision are selected from it in f32: the gradient of a row is the sum over all tokens that take
/// it, and a bf16 accumulator stops growing once it is 512 times the next addend, and often from 256 times on.
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
