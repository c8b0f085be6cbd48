//! Which files are downloaded beside the weights of a model.

use std::path::{Path, PathBuf};

use super::{PretrainedError, sentence_modules::sentence_modules, wanted::TOKENIZER_CONFIG};
use crate::weights::WEIGHT_FILES;

/// Files at the top of a model, where they are there.
pub(super) const BESIDE: [&str; 6] = [
    "tokenizer.json",
    TOKENIZER_CONFIG,
    "special_tokens_map.json",
    "chat_template.jinja",
    "generation_config.json",
    "config_sentence_transformers.json",
];

/// A file in the folder of a `sentence-transformers` module.
pub(super) struct ModuleFile {
    /// The names that it may have, of which the first that is there counts.
    pub(super) names: Vec<String>,
    /// Whether the module cannot do without.
    pub(super) is_needed: bool,
}

/// The files of the modules that `modules.json` lists.
pub(super) fn module_files(snapshot: &Path) -> Result<Vec<ModuleFile>, PretrainedError> {
    let mut files = Vec::new();
    for module in sentence_modules(snapshot)?.into_iter().flatten() {
        let mut add = |names: &[&str], is_needed| {
            let names = names.iter().map(|name| match module.path.as_str() {
                "" => name.to_string(),
                path => format!("{path}/{name}"),
            });
            let names = names.collect();
            files.push(ModuleFile { names, is_needed });
        };
        match module.name() {
            Some("Pooling") => add(&["config.json"], true),
            Some("Dense") => {
                add(&["config.json"], true);
                add(&WEIGHT_FILES, true);
            }
            Some("Normalize") => add(&["config.json"], false),
            // The transformer's are at the top; other modules are refused.
            _ => {}
        }
    }
    Ok(files)
}

/// Where the Python library notes that a commit has no such file, unlike a commit whose file is not in the cache yet.
pub(super) fn no_file(snapshot: &Path, file: &str) -> PathBuf {
    let repository = snapshot.ancestors().nth(2).unwrap_or(snapshot);
    let commit = snapshot.file_name().unwrap_or_default();
    repository.join(".no_exist").join(commit).join(file)
}
