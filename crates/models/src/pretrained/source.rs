//! Where the files of a model are: in a folder, or under a name on the Hub.

use std::path::{Path, PathBuf};

use super::{
    PretrainedError,
    wanted::{Name, Wanted},
};

/// The folder with the files of a model: `source` itself, that of a GGUF file, or where the files of a [name on the Hub](super) are. It is where to
/// look for files that this crate does not read, such as a model card.
///
/// # Errors
///
/// When the source is a name whose `config.json` can be found neither in the cache nor on the Hub.
pub fn folder(source: impl AsRef<Path>) -> Result<PathBuf, PretrainedError> {
    folder_with(source.as_ref(), Wanted::Config)
}

/// The folder with the files of a model, of which these are wanted.
pub(crate) fn folder_with(source: &Path, wanted: Wanted) -> Result<PathBuf, PretrainedError> {
    if source.is_file() {
        return Ok(source.parent().unwrap_or(Path::new("")).into());
    }
    if source.exists() {
        return Ok(source.into());
    }
    // If it cannot be a name, it is a folder that does not exist. Reading it will say so.
    let Some(name) = source.to_str().and_then(Name::parse) else {
        return Ok(source.into());
    };
    snapshot(&name, wanted).map_err(|reason| PretrainedError::Source {
        from: source.into(),
        reason,
    })
}

#[cfg(feature = "hub")]
fn snapshot(name: &Name, wanted: Wanted) -> Result<PathBuf, String> {
    super::hub::folder(name, wanted)
}

#[cfg(not(feature = "hub"))]
fn snapshot(_: &Name, _: Wanted) -> Result<PathBuf, String> {
    Err("to look it up on the Hugging Face Hub, enable the feature hub of burn-attn-models".into())
}
