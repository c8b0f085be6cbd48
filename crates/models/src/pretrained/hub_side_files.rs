//! Which files are downloaded beside the weights of a model.

use std::path::{Path, PathBuf};

use super::{Result, sentence_modules::sentence_modules};
use crate::weights::WEIGHT_FILES;

/// Files at the top of a model, where they are there, beside `tokenizer_config.json`.
pub(super) const BESIDE: [&str; 5] = [
    "tokenizer.json",
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
pub(super) fn module_files(snapshot: &Path) -> Result<Vec<ModuleFile>> {
    let config = ["config.json"].as_slice();
    let mut files = Vec::new();
    for module in sentence_modules(snapshot)?.into_iter().flatten() {
        let of_module = match module.name() {
            Some("Pooling") => vec![(config, true)],
            Some("Dense") => vec![(config, true), (&WEIGHT_FILES, true)],
            Some("Normalize") => vec![(config, false)],
            // The transformer's are at the top; other modules are refused.
            _ => vec![],
        };
        files.extend(of_module.into_iter().map(|(names, is_needed)| {
            let names = names.iter().map(|name| joined(&module.path, name));
            let names = names.collect();
            ModuleFile { names, is_needed }
        }));
    }
    Ok(files)
}

/// A file in a folder of the model, or at its top.
fn joined(folder: &str, name: &str) -> String {
    match folder {
        "" => name.into(),
        folder => format!("{folder}/{name}"),
    }
}

/// Where the Python library notes that a commit has no such file, unlike a commit whose file is not in the cache yet.
pub(super) fn no_file(snapshot: &Path, file: &str) -> PathBuf {
    let repository = snapshot.ancestors().nth(2).unwrap_or(snapshot);
    let commit = snapshot.file_name().unwrap_or_default();
    repository.join(".no_exist").join(commit).join(file)
}
