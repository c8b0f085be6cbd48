//! What the families whose model is the [`LanguageModel`] have in common.

use burn::tensor::Device;

use super::{ConfigFile, PretrainedError};
use crate::{
    language_model::{LanguageModel, LanguageModelConfig},
    weights::{Table, Weights},
};

/// The model whose `file` was read to the end, and says this.
pub(crate) fn load(
    file: ConfigFile,
    config: &LanguageModelConfig,
    table: &Table,
    device: &Device,
) -> Result<LanguageModel, PretrainedError> {
    let folder = file.folder();
    let path = file.finish()?;
    if let Err(error) = config.validate() {
        return Err(PretrainedError::Config { path, error });
    }
    let weights = Weights::open(folder)?;
    let mut model = config.init(device);
    weights.load(table, &mut model)?;
    Ok(model)
}
