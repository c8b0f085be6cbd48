//! What a parameter stands for, however it is stored, and in which type to compute with it.

use burn::{
    module::Param,
    tensor::{DType, Tensor},
};

/// The numbers of a parameter, with those of an adapter, as floats: `Module::quantize_weights` packs whatever is one, and
/// few operations read packed numbers.
pub(crate) fn floats<const D: usize>(parameter: &Param<Tensor<D>>) -> Tensor<D> {
    parameter.val().dequantize()
}

/// The type to sum squares of numbers of this type in: at least f32, since those of f16 beyond 255 are infinite.
pub(crate) fn wide(dtype: DType) -> DType {
    match dtype {
        DType::F64 => DType::F64,
        _ => DType::F32,
    }
}
