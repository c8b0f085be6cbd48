//! Models whose parameters take fewer bytes in a file.
//!
//! In Burn 0.22.1, flex is the only backend that both makes quantised numbers and reads them.

#[cfg(feature = "flex")]
use burn::tensor::quantization::{QuantScheme, QuantValue};
use burn::{
    module::{Module, ModuleMapper, Param},
    tensor::{DType, Device, Tensor},
};

/// A model with its parameters in f16, without autodiff.
pub fn in_f16<M: Module>(model: M) -> M {
    apart(model).map(&mut Precision::F16)
}

/// A model on flex with its matrices in int8, with one scale each, and everything else in f16, without autodiff. A matrix whose rows are no multiple of 4 numbers
/// stays in f16.
#[cfg(feature = "flex")]
pub fn in_int8<M: Module>(model: M) -> M {
    apart(model)
        .to_device(&Device::flex())
        .map(&mut Precision::Int8)
}

/// A model on `device` with its parameters in f32, whatever they were in, without autodiff. Those in int8 must be on flex.
pub fn in_f32<M: Module>(model: M, device: &Device) -> M {
    apart(model).map(&mut Precision::F32).to_device(device)
}

/// The model with running statistics that no clone shares: Burn 0.22.1 would cast and move those of the clones too.
fn apart<M: Module>(model: M) -> M {
    model.valid()
}

/// What the parameters become.
enum Precision {
    F16,
    #[cfg(feature = "flex")]
    Int8,
    F32,
}

impl ModuleMapper for Precision {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|tensor| match self {
            // GPUs read four numbers at once.
            #[cfg(feature = "flex")]
            Self::Int8 if D == 2 && tensor.dims()[D - 1].is_multiple_of(4) => {
                tensor.quantize_dynamic(&QuantScheme::default().with_value(QuantValue::Q8S))
            }
            Self::F32 => tensor.dequantize().cast(DType::F32),
            _ => tensor.cast(DType::F16),
        })
    }
}
