//! The tokenizer that a model was trained with.

use std::path::Path;

pub use tokenizers::Tokenizer;

use super::{PretrainedError, source::folder_with, wanted::Wanted};
use crate::weights::lfs_pointer;

/// Reads the `tokenizer.json` of a folder, of that of a GGUF file, or of a [name on the Hub](super).
///
/// The result is a tokenizer of the crate `tokenizers` 0.23. Its file decides whether it pads or truncates texts, and to which length; those of
/// sentence encoders often do both. Change that with [`with_padding`](tokenizers::TokenizerImpl::with_padding) and
/// [`with_truncation`](tokenizers::TokenizerImpl::with_truncation).
///
/// # Errors
///
/// When the file is missing, or not a tokenizer.
///
/// # Example
///
/// ```no_run
/// use burn_attn_models::pretrained;
///
/// let tokenizer = pretrained::tokenizer("path/to/model")?;
/// let tokens = tokenizer.encode("Keys and queries", true)?.get_ids().to_vec();
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
pub fn tokenizer(source: impl AsRef<Path>) -> Result<Tokenizer, PretrainedError> {
    let path = folder_with(source.as_ref(), Wanted::Tokenizer)?.join(Wanted::Tokenizer.file());
    Tokenizer::from_file(&path).map_err(|error| {
        let reason = lfs_pointer(&path).unwrap_or_else(|| error.to_string());
        PretrainedError::tokenizer(&path, reason)
    })
}
