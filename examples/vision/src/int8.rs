//! Models in Burn's format with matrices in int8, everything else in f16.

use std::{fs, path::Path};

use burn::{
    module::Module,
    store::ModuleRecord,
    tensor::{Bytes, Device},
};
use burn_attn_models::weights::{in_f32, in_int8};
use example_common::{error::Error, files::FileError};

/// The file of a model.
pub const FILE: &str = "model.bpk";

/// Writes a model.
pub fn save(model: impl Module, folder: &Path) -> Result<(), Error> {
    let record = in_int8(model).into_record();
    Ok(record.save(folder.join(FILE))?)
}

/// Reads a model of the size that `init` makes, in f32.
pub fn load<M: Module>(
    init: impl FnOnce(&Device) -> M,
    folder: &Path,
    device: &Device,
) -> Result<M, Error> {
    let path = folder.join(FILE);
    let bytes = fs::read(&path).map_err(FileError::of("read", &path))?;
    let unfit = |error| format!("{} is not such a model: {error}", path.display());
    let record = ModuleRecord::from_bytes(Bytes::from_bytes_vec(bytes));
    let record = record.map_err(|error| unfit(error.to_string()))?;
    // Other devices cannot read numbers in int8.
    let model = init(&Device::flex()).try_load_record(record);
    let model = model.map_err(|error| unfit(error.to_string()))?;
    Ok(in_f32(model, device))
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, Distribution, Tensor};

    use super::*;
    use crate::{detector::Detector, training_task::tests::alone};

    #[test]
    fn a_model_is_almost_the_same_and_a_broken_file_is_refused() {
        let _alone = alone();
        let device = Device::default();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let missing = load(Detector::new, folder.path(), &device).unwrap_err();
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
        let loaded = load(Detector::new, folder.path(), &device).unwrap();
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
        let broken = load(Detector::new, folder.path(), &device).unwrap_err();
        assert!(
            broken.to_string().contains("is not such a model"),
            "{broken}"
        );
    }
}
