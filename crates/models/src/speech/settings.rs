//! What a model's files say of its special tokens and of its heads.

use std::{collections::BTreeMap, path::Path};

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::{
    pretrained::{PretrainedError, object},
    whisper::Whisper,
};

const FILE: &str = "generation_config.json";
const EXPECTED: &str = "the settings of a speech recogniser";

/// The special tokens of a model, and the heads whose attention follows the speech.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpeechSettings {
    /// The token that every text begins with.
    pub start: u32,
    /// The token that ends a text.
    pub end: u32,
    /// The token that says that a text has no timestamps, if the model knows others.
    pub no_timestamps: Option<u32>,
    /// Tokens that are never chosen.
    pub suppressed: Vec<u32>,
    /// Tokens that are not chosen first.
    pub suppressed_first: Vec<u32>,
    /// Layer and head of the cross-attentions that say when a word was said. Default: all heads of the upper half of the layers.
    pub alignment_heads: Vec<(usize, usize)>,
    /// The token of each language, by its code: `en`. Empty in models that know English only.
    pub languages: BTreeMap<String, u32>,
    /// The token that asks for a text in the language that is spoken, in models of several languages.
    pub transcribe: Option<u32>,
}

impl SpeechSettings {
    /// What `generation_config.json` in this folder says of `model`.
    pub(super) fn of(folder: &Path, model: &Whisper) -> Result<Self, PretrainedError> {
        let path = folder.join(FILE);
        let file = File {
            fields: object(&path, EXPECTED)?,
            path: &path,
        };
        let layers = &model.seq2seq.transformer.decoder.layers;
        let heads = layers[0].self_attention.heads.n_heads();
        let layers = layers.len();
        let all = (layers / 2..layers).flat_map(|layer| (0..heads).map(move |head| (layer, head)));
        let alignment_heads: Option<Vec<(usize, usize)>> = file.value("alignment_heads")?;
        let alignment_heads = alignment_heads.unwrap_or_else(|| all.collect());
        if alignment_heads.is_empty() {
            return Err(PretrainedError::file(
                &path,
                EXPECTED,
                "alignment_heads is empty",
            ));
        }
        let is_missing = |(layer, head): &&(usize, usize)| *layer >= layers || *head >= heads;
        if let Some((layer, head)) = alignment_heads.iter().find(is_missing) {
            let reason = format!(
                "alignment_heads has head {head} of layer {layer}, but the model has {heads} heads in {layers} layers"
            );
            return Err(PretrainedError::file(&path, EXPECTED, reason));
        }
        let languages: BTreeMap<String, u32> = file.value("lang_to_id")?.unwrap_or_default();
        let tasks: BTreeMap<String, u32> = file.value("task_to_id")?.unwrap_or_default();
        let is_multilingual: bool = file
            .value("is_multilingual")?
            .unwrap_or(!languages.is_empty());
        let languages = languages.into_iter().filter(|_| is_multilingual);
        let code = |name: String| name.trim_matches(['<', '|', '>']).to_owned();
        let settings = Self {
            start: file.needed("decoder_start_token_id")?,
            end: file.needed("eos_token_id")?,
            no_timestamps: file.value("no_timestamps_token_id")?,
            suppressed: file.value("suppress_tokens")?.unwrap_or_default(),
            suppressed_first: file.value("begin_suppress_tokens")?.unwrap_or_default(),
            alignment_heads,
            languages: languages.map(|(name, token)| (code(name), token)).collect(),
            transcribe: tasks.get("transcribe").copied().filter(|_| is_multilingual),
        };
        settings.check(&path, model.vocab_size())?;
        Ok(settings)
    }

    fn check(&self, path: &Path, vocab_size: usize) -> Result<(), PretrainedError> {
        let special = [self.start, self.end].into_iter();
        let special = special.chain(self.no_timestamps).chain(self.transcribe);
        let listed = self.suppressed.iter().chain(&self.suppressed_first);
        let mut all = special.chain(listed.chain(self.languages.values()).copied());
        match all.find(|&token| token as usize >= vocab_size) {
            Some(token) => {
                let reason =
                    format!("token {token} is outside the vocabulary of {vocab_size} tokens");
                Err(PretrainedError::file(path, EXPECTED, reason))
            }
            None => Ok(()),
        }
    }
}

struct File<'a> {
    path: &'a Path,
    fields: Map<String, Value>,
}

impl File<'_> {
    /// The value of a field, if the field is there and not null.
    fn value<T: DeserializeOwned>(&self, field: &str) -> Result<Option<T>, PretrainedError> {
        let value = self.fields.get(field).unwrap_or(&Value::Null);
        Option::deserialize(value).map_err(|error| {
            PretrainedError::file(self.path, EXPECTED, format!("{field}: {error}"))
        })
    }

    fn needed<T: DeserializeOwned>(&self, field: &str) -> Result<T, PretrainedError> {
        let missing = || PretrainedError::file(self.path, EXPECTED, format!("it has no {field}"));
        self.value(field)?.ok_or_else(missing)
    }
}
