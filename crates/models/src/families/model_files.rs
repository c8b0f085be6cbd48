//! What the loaders of all families but those of language models share.

use std::path::{Path, PathBuf};

use burn::{module::Module, tensor::Device};
use burn_attn::ConfigError;

use crate::{
    pretrained::{ConfigFile, LoadOptions, PretrainedError},
    weights::{Table, Weights},
};

/// The files of a model whose `config.json` has been read.
pub(super) struct ModelFiles {
    config: PathBuf,
    pub(super) weights: Weights,
    device: Device,
}

impl ModelFiles {
    /// What `read` makes of the `config.json` of a model of this family, all of whose fields it has to read, and the files with its weights.
    pub(super) fn open<C>(
        source: &Path,
        family: &'static str,
        options: LoadOptions,
        read: impl FnOnce(&mut ConfigFile) -> Result<C, PretrainedError>,
    ) -> Result<(C, Self), PretrainedError> {
        let mut file = ConfigFile::read(source, family)?;
        let config = read(&mut file)?;
        let files = Self {
            config: file.finish()?,
            weights: options.weights(source)?,
            device: options.device,
        };
        Ok((config, files))
    }

    /// The outputs of the linear layer or convolution of this name, if the weights have it: the classes of a head.
    pub(super) fn outputs(&self, layer: &str) -> Option<usize> {
        let weight = format!("{layer}.weight");
        let mut tensors = self.weights.tensors();
        let (_, shape) = tensors.find(|(name, _)| *name == weight)?;
        shape.first().copied()
    }

    /// The model that `init` builds of a configuration, unless `valid` says that there is none, with the weights.
    pub(super) fn load<M: Module>(
        &self,
        valid: Result<(), ConfigError>,
        init: impl FnOnce(&Device) -> M,
        table: &Table,
    ) -> Result<M, PretrainedError> {
        valid.map_err(|error| PretrainedError::Config {
            path: self.config.clone(),
            error,
        })?;
        let mut model = init(&self.device);
        self.weights.load(table, &mut model)?;
        Ok(model)
    }
}
