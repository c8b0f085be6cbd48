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
