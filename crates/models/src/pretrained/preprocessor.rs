//! What says how images and recordings become the input of a model.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::{
    PretrainedError, Result,
    json::{object, object_if_any},
    wanted::{PROCESSOR_CONFIG, Wanted},
};

/// The settings of a preprocessor in this folder, and the file that has them, which errors call `expected`: the object `part` of `processor_config.json`, where version 5 of
/// `transformers` writes them for models that read texts as well, or else `preprocessor_config.json`, which then has to be there.
pub(crate) fn preprocessor(
    folder: &Path,
    part: &str,
    expected: &'static str,
) -> Result<(PathBuf, Map<String, Value>)> {
    if let Some(found) = preprocessor_if_any(folder, part, expected)? {
        return Ok(found);
    }
    let path = folder.join(Wanted::Preprocessor.file());
    let fields = object(&path, expected)?;
    Ok((path, fields))
}

/// As [`preprocessor`]; nothing if there are no settings.
pub(crate) fn preprocessor_if_any(
    folder: &Path,
    part: &str,
    expected: &'static str,
) -> Result<Option<(PathBuf, Map<String, Value>)>> {
    let path = folder.join(PROCESSOR_CONFIG);
    match object_if_any(&path, expected)?.remove(part) {
        Some(Value::Object(fields)) => return Ok(Some((path, fields))),
        // Version 4 wrote the file without the part.
        None | Some(Value::Null) => {}
        Some(_) => {
            let reason = format!("its {part} is not an object");
            return Err(PretrainedError::file(&path, expected, reason));
        }
    }
    let path = folder.join(Wanted::Preprocessor.file());
    match path.exists() {
        true => Ok(Some((path.clone(), object(&path, expected)?))),
        false => Ok(None),
    }
}
