//! Files in JSON.

use std::{fs, path::Path};

use serde_json::{Map, Value};

use super::PretrainedError;
use crate::weights::lfs_pointer;

/// The largest file accepted, in bytes: published ones have a few thousand.
const LARGEST: u64 = 1 << 24;

/// The fields of a file.
pub(crate) fn object(path: &Path) -> Result<Map<String, Value>, PretrainedError> {
    match json(path)? {
        Value::Object(fields) => Ok(fields),
        _ => Err(PretrainedError::File {
            path: path.into(),
            reason: "it is not a JSON object".into(),
        }),
    }
}

/// Whether two values are equal, 1 and 1.0 among them.
pub(super) fn is_equal(a: &Value, b: &Value) -> bool {
    a == b || a.as_f64().is_some_and(|a| b.as_f64() == Some(a))
}

/// Any file in JSON.
pub(crate) fn json(path: &Path) -> Result<Value, PretrainedError> {
    let failed = |reason: String| PretrainedError::File {
        path: path.into(),
        reason,
    };
    let size = fs::metadata(path).map_err(|error| failed(error.to_string()))?;
    if !size.is_file() || size.len() > LARGEST {
        return Err(failed(format!(
            "it is not a file of at most {LARGEST} bytes"
        )));
    }
    let text = fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| {
        let pointer = lfs_pointer(path);
        failed(pointer.unwrap_or_else(|| error.to_string()))
    })
}
