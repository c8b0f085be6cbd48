//! `modules.json`, which lists the modules of a `sentence-transformers` model.

use std::path::{Component, Path};

use serde_json::Value;

use super::{PretrainedError, Result, json::json};

/// The modules of a `sentence-transformers` model.
pub(crate) const MODULES: &str = "modules.json";
/// Where the versions of `sentence-transformers` keep what concerns the transformer among them. The first that is there counts.
pub(crate) const SENTENCE_CONFIGS: [&str; 7] = [
    "sentence_bert_config.json",
    "sentence_roberta_config.json",
    "sentence_distilbert_config.json",
    "sentence_camembert_config.json",
    "sentence_albert_config.json",
    "sentence_xlm-roberta_config.json",
    "sentence_xlnet_config.json",
];

#[derive(Debug)]
pub(crate) struct SentenceModule {
    /// Its class in Python.
    pub(crate) class: String,
    /// Its folder, below that of the model, without a slash at its end; empty for that of the model.
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
    let read = json(&path, expected)?;
    let modules: Option<_> = read
        .as_array()
        .and_then(|modules| modules.iter().map(module).collect());
    let reason = "it is not a list of modules, each with its type and a path below the folder";
    modules
        .map(Some)
        .ok_or_else(|| PretrainedError::file(&path, expected, reason))
}

fn module(module: &Value) -> Option<SentenceModule> {
    let text = |field: &str| module.get(field)?.as_str();
    // Files outside the folder are none of the model's.
    let names = Path::new(text("path")?)
        .components()
        .map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        });
    Some(SentenceModule {
        class: text("type")?.to_owned(),
        path: names.collect::<Option<Vec<_>>>()?.join("/"),
    })
}
