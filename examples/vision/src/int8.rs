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

#[cfg(test)]
mod tests {
    use std::fs;

    use burn::tensor::{Device, Distribution};

    use super::*;
    use crate::{detector::Detector, learned::tests::alone};

    #[test]
    fn a_model_is_almost_the_same_and_a_broken_file_is_refused() {
        let _alone = alone();
        let device = Device::default();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let missing = load(Detector::new(&device), folder.path()).unwrap_err();
        assert!(missing.to_string().contains(FILE), "{missing}");
        let model = Detector::new(&device);
        save(model.clone(), folder.path()).unwrap();
        let bytes = fs::read(&path).unwrap();
        // A byte for each of 1.6 million parameters, two for those of convolutions and norms.
        assert!(
            (1_600_000..1_800_000).contains(&bytes.len()),
            "{}",
            bytes.len()
        );
        let loaded = load(Detector::new(&device), folder.path()).unwrap();
        let images = Tensor::random([2, 1, 96, 96], Distribution::Default, &device);
        let [before, after] = [model, loaded].map(|model| {
            let output = model.forward(images.clone(), true);
            assert_eq!(output.grid, [12, 12]);
            assert_eq!(
                output.weights.map(|weights| weights.dims()),
                Some([2, 8, 10, 144])
            );
            let shapes = output.layers.iter().map(|layer| layer.boxes.dims());
            assert_eq!(
                shapes.collect::<Vec<_>>(),
                [[2, 144, 4], [2, 10, 4], [2, 10, 4], [2, 10, 4]]
            );
            output.layers[0].logits.clone()
        });
        let largest = before.clone().abs().max().into_scalar::<f32>();
        let apart = (before - after).abs().max().into_scalar::<f32>();
        assert!(
            apart > 0.0 && apart < 0.02 * largest,
            "{apart} of {largest}"
        );
        fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        let broken = load(Detector::new(&device), folder.path()).unwrap_err();
        assert!(
            broken.to_string().contains("is not such a model"),
            "{broken}"
        );
    }
}
