//! What is wanted of the Hub: the name of a model, and which of its files.

/// What the tokenizer's class in Python reads, the chat template among it.
#[cfg(any(feature = "hub", feature = "tokenizers"))]
pub(crate) const TOKENIZER_CONFIG: &str = "tokenizer_config.json";

/// The settings of the preprocessors of a model that reads texts and images or recordings, in files of version 5 of `transformers`.
#[cfg(any(feature = "hub", feature = "speech", feature = "vision"))]
pub(super) const PROCESSOR_CONFIG: &str = "processor_config.json";

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
    pub(super) fn parse(text: &str) -> Option<Self> {
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
#[cfg_attr(
    not(all(feature = "chat", feature = "speech", feature = "vision")),
    allow(dead_code, reason = "without a feature, nobody asks for its files")
)]
pub(crate) enum Wanted {
    /// Configuration.
    Config,
    /// Configuration of a model whose weights are wanted if it is supported.
    ModelConfig,
    /// Configuration and weights.
    Model,
    /// Configuration, and all of a `sentence-transformers` model but the weights of its transformer.
    Sentences,
    /// The files that a conversation needs beside the weights.
    Chat,
    /// The files that speech recognition needs beside configuration and weights.
    Speech,
    /// How images or recordings become the input of the model.
    Preprocessor,
    /// `vocab.json`, and what the tokenizer's other files say of its tokens.
    Vocabulary,
    /// `tokenizer.json`.
    Tokenizer,
}

impl Wanted {
    /// The main one of these files.
    pub(crate) fn file(self) -> &'static str {
        match self {
            Self::Config | Self::ModelConfig | Self::Model | Self::Sentences => "config.json",
            Self::Speech => "generation_config.json",
            Self::Preprocessor => "preprocessor_config.json",
            Self::Vocabulary => "vocab.json",
            Self::Chat | Self::Tokenizer => "tokenizer.json",
        }
    }
}

/// Whether this can be part of a name, which becomes part of a path and of a URL.
fn is_part(part: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !part.is_empty() && part.chars().all(is_allowed) && !part.starts_with('.')
}
