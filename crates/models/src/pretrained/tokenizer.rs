//! The tokenizer that a model was trained with, and what the files beside it say of special tokens.

use std::path::Path;

use serde_json::{Map, Value};
pub use tokenizers::Tokenizer;

use super::{
    PretrainedError,
    error::{GENERATION_SETTINGS, MODEL_CONFIG, TOKENIZER_SETTINGS},
    json::object_if_any,
    source::folder_with,
    wanted::{TOKENIZER_CONFIG, Wanted},
};
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

/// The tokens that end a text, for [`stop_tokens`](crate::generate::GenerateOptions::stop_tokens): those of `generation_config.json`, of `config.json`,
/// and the `eos_token` of the tokenizer's files, all together. A model may end its turns with one of them and its texts with another. The tokenizer's
/// files are `tokenizer_config.json` and, unless that has `added_tokens_decoder`, `special_tokens_map.json`, which then comes first.
///
/// They may be outside the vocabulary of the model, which refuses such stop tokens.
///
/// # Errors
///
/// When a file is there and cannot be read, when there is no such folder, or when the files of a name, `tokenizer.json` among them, can be found
/// neither in the cache nor on the Hub.
pub fn end_tokens(
    source: impl AsRef<Path>,
    tokenizer: &Tokenizer,
) -> Result<Vec<u32>, PretrainedError> {
    let folder = folder_with(source.as_ref(), Wanted::Chat)?;
    // The folder of a GGUF file may be the empty path, which is the working directory.
    if !folder.join(".").exists() {
        return Err(PretrainedError::Source {
            from: folder,
            reason: "no model on the Hub can have this name".into(),
        });
    }
    let mut ends = Vec::new();
    for (name, expected) in [
        ("generation_config.json", GENERATION_SETTINGS),
        ("config.json", MODEL_CONFIG),
    ] {
        let fields = object_if_any(&folder.join(name), expected)?;
        let tokens = match fields.get("eos_token_id") {
            Some(Value::Array(tokens)) => tokens,
            Some(token) => std::slice::from_ref(token),
            None => &[],
        };
        let tokens = tokens.iter().filter_map(Value::as_u64);
        ends.extend(tokens.filter_map(|token| u32::try_from(token).ok()));
    }
    let fields = tokenizer_fields(&folder)?;
    let token = fields.get("eos_token").and_then(text_of);
    ends.extend(token.and_then(|token| tokenizer.token_to_id(token)));
    ends.sort_unstable();
    ends.dedup();
    Ok(ends)
}

/// What `tokenizer_config.json` says, and `special_tokens_map.json`, whose fields take the place of those of the same name, null or not. Like
/// `transformers`, this does not read the map if the configuration has `added_tokens_decoder`.
pub(crate) fn tokenizer_fields(folder: &Path) -> Result<Map<String, Value>, PretrainedError> {
    let mut fields = object_if_any(&folder.join(TOKENIZER_CONFIG), TOKENIZER_SETTINGS)?;
    if !fields.contains_key("added_tokens_decoder") {
        let map = folder.join("special_tokens_map.json");
        fields.extend(object_if_any(&map, TOKENIZER_SETTINGS)?);
    }
    Ok(fields)
}

/// The text of a token, which is a text in the file, or an object that has it.
pub(crate) fn text_of(token: &Value) -> Option<&str> {
    token.get("content").unwrap_or(token).as_str()
}
