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
