//! Models in Burn's format with matrices in int8: a byte for each parameter.

use std::path::Path;

use burn::{
    module::{Module, ModuleMapper, Param},
    store::ModuleRecord,
    tensor::{
        DType, Tensor,
        quantization::{QuantScheme, QuantValue},
    },
};
use example_common::error::Error;

/// The file of a model.
pub const FILE: &str = "model.bpk";

/// Writes a model.
pub fn save(model: impl Module, folder: &Path) -> Result<(), Error> {
    let record = model.map(&mut Quantize).into_record();
    Ok(record.save(folder.join(FILE))?)
}

/// Reads a model of the size of this one, in f32.
pub fn load<M: Module>(model: M, folder: &Path) -> Result<M, Error> {
    let path = folder.join(FILE);
    let unfit = |error| format!("{} is not such a model: {error}", path.display());
    let record = ModuleRecord::load(&path).map_err(|error| unfit(error.to_string()))?;
    let model = model.try_load_record(record);
    let model = model.map_err(|error| unfit(error.to_string()))?;
    Ok(model.map(&mut Dequantize))
}

struct Quantize;

impl ModuleMapper for Quantize {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|tensor| {
            // GPUs read four numbers at once.
            match D == 2 && tensor.dims()[D - 1].is_multiple_of(4) {
                true => {
                    tensor.quantize_dynamic(&QuantScheme::default().with_value(QuantValue::Q8S))
                }
                false => tensor.cast(DType::F16),
            }
        })
    }
}

struct Dequantize;

impl ModuleMapper for Dequantize {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|tensor| tensor.dequantize().cast(DType::F32))
    }
}
