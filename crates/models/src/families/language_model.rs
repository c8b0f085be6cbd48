//! A [`LanguageModel`] of any family.

use std::path::Path;

use super::{gpt_neox, gpt2, llama};
use crate::{
    language_model::LanguageModel,
    pretrained::{ConfigFile, LoadOptions, PretrainedError},
};

/// The families with other mixers of tokens, whose models are of other types.
const OF_OTHER_MIXERS: [&str; 2] = ["deepseek_v2", "qwen3_next"];

impl LanguageModel {
    /// Loads a model from a folder that Hugging Face's `transformers` saved, or from a [name on the Hub](crate::pretrained): `config.json`, and
    /// `model.safetensors`, its shards, or `pytorch_model.bin`. The `model_type` is that of [`gpt2::from_pretrained`],
    /// [`gpt_neox::from_pretrained`] or [`llama::from_pretrained`]. Models with other mixers of tokens are of other types, and have other readers:
    /// [`deepseek_v2::from_pretrained`](crate::deepseek_v2::from_pretrained), [`qwen3_next::from_pretrained`](crate::qwen3_next::from_pretrained).
    ///
    /// # Errors
    ///
    /// When a file cannot be read, or a field, a value or a tensor is not supported, which the error names; when the device does not compute in the
    /// dtype of the options.
    ///
    /// # Cost
    ///
    /// Reads every tensor once for every parameter that has a part of it, and an embedding that is also the head once more where the files have both. No
    /// parameter is initialised at random first.
    ///
    /// # Example
    ///
    /// See [the crate](crate#published-models).
    pub fn from_pretrained(
        source: impl AsRef<Path>,
        options: impl Into<LoadOptions>,
    ) -> Result<Self, PretrainedError> {
        let mut file = ConfigFile::read(source.as_ref(), "LanguageModel")?;
        file.needs("model_type")?;
        let kind = file.parsed("model_type", "a text", |kind| {
            kind.as_str().map(str::to_owned)
        });
        if let Some(other) = kind?.filter(|kind| OF_OTHER_MIXERS.contains(&kind.as_str())) {
            let supported =
                format!("models of self-attention alone; {other}::from_pretrained loads this one");
            return Err(file.unsupported("model_type", supported));
        }
        let llamas = llama::FAMILIES.map(|spec| spec.model_type);
        let families = ["gpt2", "gpt_neox"].into_iter().chain(llamas);
        let families: Vec<_> = families.map(|name| (name, name)).collect();
        match file.choice("model_type", &families)? {
            "gpt2" => gpt2::from_pretrained(source, options),
            "gpt_neox" => gpt_neox::from_pretrained(source, options),
            // The header of a GGUF file can be long, and is read once.
            _ => {
                let file = file.of_family(llama::FAMILY);
                llama::from_file((source.as_ref(), file), &options.into())
            }
        }
    }
}
