//! Where the files of a model are: in a folder, or under a name on the Hub.

use std::path::{Path, PathBuf};

use super::PretrainedError;
use crate::weights::Weights;

/// What the tokenizer's class in Python reads, the chat template among it.
#[cfg(any(feature = "hub", feature = "tokenizers"))]
pub(crate) const TOKENIZER_CONFIG: &str = "tokenizer_config.json";

/// A model's name on the Hub.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(feature = "hub"),
    allow(dead_code, reason = "read where names are looked up")
)]
pub(super) struct Name {
    /// `organisation/model`, or `model` alone.
    pub(super) repository: String,
    /// A branch, a tag or a commit.
    pub(super) revision: String,
}

impl Name {
    /// Parses `repository` or `repository@revision`; `None` if no model can have the name.
    fn parse(text: &str) -> Option<Self> {
        let (repository, revision) = text.split_once('@').unwrap_or((text, "main"));
        let parts: Vec<&str> = repository.split('/').collect();
        // The cache has `--` in the place of `/`.
        let is_name = parts.len() <= 2
            && parts
                .iter()
                .all(|part| is_part(part) && !part.contains("--"));
        let is_revision = revision.split('/').all(is_part);
        (is_name && is_revision).then(|| Self {
            repository: repository.into(),
            revision: revision.into(),
        })
    }
}

/// Which files are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Configuration.
    Config,
    /// Configuration of a model whose weights are wanted if it is supported.
    ModelConfig,
    /// Configuration and weights.
    Model,
    /// Configuration, and all of a `sentence-transformers` model but the weights of its transformer.
    #[cfg_attr(
        not(feature = "tokenizers"),
        allow(dead_code, reason = "only `SentenceEncoder` asks for it")
    )]
    Sentences,
    /// The files that a conversation needs beside configuration and weights.
    #[cfg_attr(
        not(feature = "chat"),
        allow(dead_code, reason = "only `ChatModel` asks for it")
    )]
    Chat,
    /// `tokenizer.json`.
    #[cfg_attr(
        not(feature = "tokenizers"),
        allow(dead_code, reason = "only `tokenizer` asks for it")
    )]
    Tokenizer,
}

impl Wanted {
    /// The file without which none of it is there.
    pub(crate) fn file(self) -> &'static str {
        match self {
            Self::Config | Self::ModelConfig | Self::Model | Self::Sentences => "config.json",
            Self::Chat | Self::Tokenizer => "tokenizer.json",
        }
    }
}

/// Whether this can be part of a name, which becomes part of a path and of a URL.
fn is_part(part: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !part.is_empty() && part.chars().all(is_allowed) && !part.starts_with('.')
}

/// The folder with the files of a model: `source` itself, that of a GGUF file, or where the files of a [name on the Hub](super) are. It is where to
/// look for files that this crate does not read, such as a model card.
///
/// # Errors
///
/// When the source is a name whose `config.json` can be found neither in the cache nor on the Hub.
pub fn folder(source: impl AsRef<Path>) -> Result<PathBuf, PretrainedError> {
    folder_with(source.as_ref(), Wanted::Config)
}

/// Opens the weights of a model whose configuration is supported: those of a name on the Hub are only now downloaded.
pub(super) fn weights(source: &Path) -> Result<Weights, PretrainedError> {
    let weights = match source.is_file() {
        true => source.into(),
        false => folder_with(source, Wanted::Model)?,
    };
    Ok(Weights::open(weights)?)
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
    match source.to_str().and_then(Name::parse) {
        Some(name) => snapshot(&name, wanted).map_err(|reason| PretrainedError::Source {
            from: source.into(),
            reason,
        }),
        None => Ok(source.into()),
    }
}

#[cfg(feature = "hub")]
fn snapshot(name: &Name, wanted: Wanted) -> Result<PathBuf, String> {
    super::hub::folder(name, wanted)
}

#[cfg(not(feature = "hub"))]
fn snapshot(_: &Name, _: Wanted) -> Result<PathBuf, String> {
    Err("to look it up on the Hugging Face Hub, enable the feature hub of burn-attn-models".into())
}
