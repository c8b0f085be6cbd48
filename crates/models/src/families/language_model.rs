//! A [`LanguageModel`] of any family.

use std::path::Path;

use burn::tensor::Device;

use super::{gpt_neox, gpt2, llama};
use crate::{
    language_model::LanguageModel,
    pretrained::{ConfigFile, LoadOptions, PretrainedError},
};

type Load = fn(&Path, &LoadOptions) -> Result<LanguageModel, PretrainedError>;

impl LanguageModel {
    /// Loads a model from a folder that Hugging Face's `transformers` saved, or from a [name on the Hub](crate::pretrained): `config.json`, and
    /// `model.safetensors`, its shards, or `pytorch_model.bin`. The `model_type` is that of [`gpt2::from_pretrained`],
    /// [`gpt_neox::from_pretrained`] or [`llama::from_pretrained`].
    ///
    /// # Errors
    ///
    /// When a file cannot be read, or a field, a value or a tensor is not supported. The error names the file, field or tensor.
    ///
    /// # Cost
    ///
    /// Reads every tensor once. No parameter is initialised at random first.
    ///
    /// # Example
    ///
    /// See [the crate](crate#published-models).
    pub fn from_pretrained(
        source: impl AsRef<Path>,
        device: &Device,
    ) -> Result<Self, PretrainedError> {
        Self::from_pretrained_with(source, &device.into())
    }

    /// [`from_pretrained`](Self::from_pretrained) with options, such as the dtype of the parameters. It also fails when the device does not compute
    /// in the dtype.
    pub fn from_pretrained_with(
        source: impl AsRef<Path>,
        options: &LoadOptions,
    ) -> Result<Self, PretrainedError> {
        let mut file = ConfigFile::read(source.as_ref(), "LanguageModel")?;
        file.needs("model_type")?;
        let gpt: [(&str, Load); 2] = [("gpt2", gpt2::load), ("gpt_neox", gpt_neox::load)];
        let llamas = llama::FAMILIES.map(|spec| (spec.model_type, llama::load as Load));
        let families: Vec<_> = gpt.into_iter().chain(llamas).collect();
        let load = file.choice("model_type", &families)?;
        load(source.as_ref(), options)
    }
}
