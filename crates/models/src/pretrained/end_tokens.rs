//! What the files beside a model say of its special tokens.

use std::path::Path;

use serde_json::{Map, Value};

use super::{PretrainedError, Tokenizer, folder, json::object_if_any, wanted::TOKENIZER_CONFIG};

/// The tokens that end a text, for [`stop_tokens`](crate::generate::GenerateOptions::stop_tokens): those of `generation_config.json`, of `config.json`,
/// and the `eos_token` of the tokenizer's files, all together. A model may end its turns with one of them and its texts with another.
///
/// They may be outside the vocabulary of the model, which refuses such stop tokens.
///
/// # Errors
///
/// When a file is there and cannot be read.
pub fn end_tokens(
    source: impl AsRef<Path>,
    tokenizer: &Tokenizer,
) -> Result<Vec<u32>, PretrainedError> {
    let folder = folder(source)?;
    let mut ends = Vec::new();
    for name in ["generation_config.json", "config.json"] {
        let fields = object_if_any(&folder.join(name))?;
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

pub(crate) fn tokenizer_fields(folder: &Path) -> Result<Map<String, Value>, PretrainedError> {
    let mut fields = object_if_any(&folder.join(TOKENIZER_CONFIG))?;
    for (name, token) in object_if_any(&folder.join("special_tokens_map.json"))? {
        fields.entry(name).or_insert(token);
    }
    Ok(fields)
}

/// The text of a token, which is a text in the file, or an object that has it.
pub(crate) fn text_of(token: &Value) -> Option<&str> {
    token.get("content").unwrap_or(token).as_str()
}
