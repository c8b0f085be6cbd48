//! `modules.json`, which lists the modules of a `sentence-transformers` model.

use std::path::{Component, Path};

use serde::{Deserialize, Deserializer, de::Error};

use super::{PretrainedError, Result, json::json};

/// The modules of a `sentence-transformers` model.
pub(crate) const MODULES: &str = "modules.json";
/// The files with the settings of the transformer, by version of `sentence-transformers`. The first that is there is read.
pub(crate) const SENTENCE_CONFIGS: [&str; 7] = [
    "sentence_bert_config.json",
    "sentence_roberta_config.json",
    "sentence_distilbert_config.json",
    "sentence_camembert_config.json",
    "sentence_albert_config.json",
    "sentence_xlm-roberta_config.json",
    "sentence_xlnet_config.json",
];

#[derive(Debug, Deserialize)]
pub(crate) struct SentenceModule {
    /// The class in Python.
    #[serde(rename = "type")]
    pub(crate) class: String,
    /// The folder of the module, below that of the model, without a slash at its end; empty for the folder of the model.
    #[serde(deserialize_with = "below_folder")]
    pub(crate) path: String,
}

impl SentenceModule {
    /// The name of the class, if it is one of the library.
    pub(crate) fn name(&self) -> Option<&str> {
        let below = self.class.strip_prefix("sentence_transformers.")?;
        below.rsplit('.').next()
    }
}

/// What `modules.json` lists, if there is one.
pub(crate) fn sentence_modules(folder: &Path) -> Result<Option<Vec<SentenceModule>>> {
    let path = folder.join(MODULES);
    if !path.exists() {
        return Ok(None);
    }
    let expected = "the modules of a sentence encoder";
    let modules = Vec::deserialize(json(&path, expected)?).map(Some);
    let reason = "it is not a list of modules, each with its type and a path below the folder";
    modules.map_err(|_| PretrainedError::file(&path, expected, reason))
}

/// A path below the folder of the model; paths that lead out of it are refused.
fn below_folder<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let path = String::deserialize(deserializer)?;
    let names = Path::new(&path).components().map(|part| match part {
        Component::Normal(name) => name.to_str(),
        _ => None,
    });
    let names: Option<Vec<&str>> = names.collect();
    Ok(names.ok_or_else(|| Error::custom(&path))?.join("/"))
}
