//! Which files of a model are wanted of the Hub, and whether a folder has them.

use std::path::{Path, PathBuf};

use super::{
    sentence_modules::{MODULES, SENTENCE_CONFIGS, sentence_modules},
    wanted::{PROCESSOR_CONFIG, TOKENIZER_CONFIG, Wanted},
};
use crate::weights::{WEIGHT_FILES, shards};

/// Files at the top of a model, where they are there, beside those that have to be known for a chat.
const BESIDE: [&str; 6] = [
    "preprocessor_config.json",
    PROCESSOR_CONFIG,
    "tokenizer.json",
    "special_tokens_map.json",
    "chat_template.jinja",
    "config_sentence_transformers.json",
];

/// A wanted file: the first of these names that the model has.
pub(super) struct WantedFile {
    pub(super) names: Vec<String>,
    pub(super) need: Need,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// A folder has to have it.
    Always,
    /// A folder has to have it, unless it is [noted](no_file) that there is none.
    Known,
    /// A folder may lack it. It is downloaded with the others.
    IfAny,
}

/// The wanted files, as far as those in the folder tell: some name others.
pub(super) fn wanted_files(folder: &Path, wanted: Wanted) -> Vec<WantedFile> {
    let one = |name: &str, need| WantedFile {
        names: vec![name.into()],
        need,
    };
    let need = |need, of| if wanted == of { need } else { Need::IfAny };
    let mut files = vec![one(wanted.file(), Need::Always)];
    if wanted == Wanted::Preprocessor {
        // Either has the settings, and if there are both, both are read.
        files[0].names.push(PROCESSOR_CONFIG.into());
        files.push(one(PROCESSOR_CONFIG, Need::IfAny));
    }
    if wanted == Wanted::Speech {
        files.push(one(Wanted::Tokenizer.file(), Need::Always));
    }
    if wanted == Wanted::Vocabulary {
        files.push(one(TOKENIZER_CONFIG, Need::Known));
        let others = ["special_tokens_map.json", "added_tokens.json"];
        files.extend(others.map(|name| one(name, Need::IfAny)));
    }
    if matches!(wanted, Wanted::Model | Wanted::Sentences | Wanted::Chat) {
        let beside = BESIDE.iter().chain(&SENTENCE_CONFIGS);
        files.extend(beside.map(|name| one(name, Need::IfAny)));
        let known = ["config.json", "generation_config.json", TOKENIZER_CONFIG];
        files.extend(known.map(|name| one(name, need(Need::Known, Wanted::Chat))));
        files.push(one(MODULES, need(Need::Known, Wanted::Sentences)));
        files.extend(module_files(folder, need(Need::Always, Wanted::Sentences)));
    }
    if wanted == Wanted::Model {
        files.push(WantedFile {
            names: WEIGHT_FILES.map(String::from).into(),
            need: Need::Always,
        });
        let shards = shards_of(folder);
        files.extend(shards.iter().map(|shard| one(shard, Need::Always)));
    }
    files
}

/// The files of the modules that `modules.json` lists; none if it cannot be read, which is refused when the model is read.
fn module_files(folder: &Path, need: Need) -> Vec<WantedFile> {
    let config: &[&str] = &["config.json"];
    let mut files = Vec::new();
    for module in sentence_modules(folder).ok().flatten().unwrap_or_default() {
        let of_module = match module.name() {
            Some("Pooling") => vec![(config, need)],
            Some("Dense") => vec![(config, need), (&WEIGHT_FILES, need)],
            Some("Normalize") => vec![(config, Need::IfAny)],
            // The transformer's are at the top; other modules are refused.
            _ => vec![],
        };
        for (names, need) in of_module {
            let names = names.iter().map(|name| format!("{}/{name}", module.path));
            // Without a folder, it is at the top.
            let names = names.map(|name| name.trim_start_matches('/').to_owned());
            let names = names.collect();
            files.push(WantedFile { names, need });
        }
    }
    files
}

/// The files that the index of a folder names; none if the weights are one file, or if it cannot be read, which is refused when they are read.
fn shards_of(folder: &Path) -> Vec<String> {
    let mut weights = WEIGHT_FILES.iter().map(|name| folder.join(name));
    let weights = weights.find(|path| path.exists());
    let index = weights.filter(|path| path.extension().is_some_and(|kind| kind == "json"));
    let shards = index.and_then(|index| shards(&index).ok());
    shards.into_iter().flatten().collect()
}

/// A wanted file that this folder does not have.
pub(super) fn lack(folder: &Path, wanted: Wanted) -> Option<String> {
    let mut files = wanted_files(folder, wanted).into_iter();
    let lacking = files.find(|file| {
        let is_enough = match file.need {
            Need::Always => false,
            Need::Known => no_file(folder, &file.names[0]).exists(),
            Need::IfAny => true,
        };
        !is_enough && !file.names.iter().any(|name| folder.join(name).exists())
    });
    lacking?.names.into_iter().next()
}

/// Where the Python library notes that a commit has no such file, unlike a commit whose file is not in the cache yet.
pub(super) fn no_file(snapshot: &Path, file: &str) -> PathBuf {
    let repository = snapshot.ancestors().nth(2).unwrap_or(snapshot);
    let commit = snapshot.file_name().unwrap_or_default();
    repository.join(".no_exist").join(commit).join(file)
}
