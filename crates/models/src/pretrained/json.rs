//! Files in JSON.

use std::{fs, path::Path};

use serde_json::{Map, Value};

use super::{PretrainedError, Result};
use crate::weights::{Reason, ensure, lfs_pointer};

/// The largest file accepted, in bytes: published configurations have a few thousand, those of tokenizers up to a million.
const LARGEST: u64 = 1 << 24;

/// The fields of a file, which errors call `expected`.
pub(crate) fn object(path: &Path, expected: &'static str) -> Result<Map<String, Value>> {
    match json(path, expected)? {
        Value::Object(fields) => Ok(fields),
        _ => Err(PretrainedError::file(
            path,
            expected,
            "it is not a JSON object",
        )),
    }
}

/// As [`object`]; no fields if there is no file.
#[cfg(any(feature = "tokenizers", feature = "vision"))]
pub(crate) fn object_if_any(path: &Path, expected: &'static str) -> Result<Map<String, Value>> {
    match path.exists() {
        true => object(path, expected),
        false => Ok(Map::new()),
    }
}

pub(crate) fn json(path: &Path, expected: &'static str) -> Result<Value> {
    let read = || -> Result<Value, Reason> {
        let file = fs::metadata(path)?;
        // Opening a pipe would block until another process writes to it.
        ensure!(file.is_file(), "it is not a regular file");
        let len = file.len();
        ensure!(
            len <= LARGEST,
            "it has {len} bytes, and at most {LARGEST} are read"
        );
        let text = fs::read_to_string(path)?;
        serde_json::from_str(&text).map_err(|error| match lfs_pointer(path) {
            Some(pointer) => pointer.into(),
            None => error.into(),
        })
    };
    read().map_err(|reason| PretrainedError::file(path, expected, reason))
}
