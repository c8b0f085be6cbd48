//! The files of `sentence-transformers`.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::pretrained::{ConfigFile, PretrainedError, Result, object};

/// What errors call the model.
const FAMILY: &str = "SentenceEncoder";
/// What errors call the file of one of its modules.
pub(super) const MODULE_CONFIG: &str = "the configuration of a module";

/// A file in JSON, which errors call `expected`, and all of whose fields have to be read.
pub(super) fn read(path: PathBuf, expected: &'static str) -> Result<ConfigFile> {
    let fields = object(&path, expected)?;
    Ok(of_fields(path, fields))
}

pub(super) fn of_fields(path: PathBuf, fields: Map<String, Value>) -> ConfigFile {
    ConfigFile::of_fields(path, FAMILY, fields)
}

pub(super) fn first_of(
    folder: &Path,
    files: &[&str],
    expected: &'static str,
) -> Result<Option<ConfigFile>> {
    let mut paths = files.iter().map(|file| folder.join(file));
    let path = paths.find(|path| path.exists());
    path.map(|path| read(path, expected)).transpose()
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
