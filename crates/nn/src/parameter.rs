//! What a parameter stands for, however it is stored.

use burn::{module::Param, tensor::Tensor};

/// The numbers of a parameter, with those of an adapter, as floats: `Module::quantize_weights` packs whatever is one, and
/// few operations read packed numbers.
pub(crate) fn floats<const D: usize>(parameter: &Param<Tensor<D>>) -> Tensor<D> {
    parameter.val().dequantize()
}
