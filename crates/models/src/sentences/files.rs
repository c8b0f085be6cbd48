//! The files of `sentence-transformers`.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::pretrained::{ConfigFile, PretrainedError, Result, object};

/// What errors call the model.
const FAMILY: &str = "SentenceEncoder";

/// A file in JSON, all of whose fields have to be read.
pub(super) fn read(path: PathBuf) -> Result<ConfigFile> {
    let fields = object(&path)?;
    Ok(of_fields(path, fields))
}

pub(super) fn of_fields(path: PathBuf, fields: Map<String, Value>) -> ConfigFile {
    ConfigFile::of_fields(path, FAMILY, fields)
}

pub(super) fn first_of(folder: &Path, files: &[&str]) -> Result<Option<ConfigFile>> {
    let mut paths = files.iter().map(|file| folder.join(file));
    paths.find(|path| path.exists()).map(read).transpose()
}

pub(super) fn unsupported(
    path: PathBuf,
    field: impl Into<String>,
    found: String,
    supported: impl Into<String>,
) -> PretrainedError {
    PretrainedError::Unsupported {
        path,
        field: field.into(),
        found,
        supported: supported.into(),
        family: FAMILY,
    }
}
