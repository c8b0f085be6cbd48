//! Why a folder cannot become a model.

use std::path::{Path, PathBuf};

use burn::tensor::FloatDType;
use burn_attn::ConfigError;
use thiserror::Error;

use crate::weights::{WeightsError, list};

/// What errors call a `config.json`, and a GGUF file whose metadata say the same.
pub(crate) const MODEL_CONFIG: &str = "the configuration of a model";
/// What errors call a `generation_config.json`.
#[cfg(feature = "tokenizers")]
pub(crate) const GENERATION_SETTINGS: &str = "the settings of a generation";
/// What errors call a `tokenizer_config.json`, and a `special_tokens_map.json`, which has some of its fields.
#[cfg(feature = "tokenizers")]
pub(crate) const TOKENIZER_SETTINGS: &str = "the configuration of a tokenizer";
/// What errors call a `preprocessor_config.json` of recordings, and the part of `processor_config.json` that says the same.
#[cfg(feature = "speech")]
pub(crate) const AUDIO_SETTINGS: &str = "the settings of an audio processor";

/// Why a folder cannot become a model, in one sentence with the offending fields and values.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PretrainedError {
    /// The source is not a folder, and not a name on the Hub whose files could be found.
    #[error("{source} is not a folder, and {reason}", source = from.display())]
    Source {
        /// The source.
        from: PathBuf,
        /// Why it does not work as a name on the Hub.
        reason: String,
    },
    /// A file is missing, or not what it should be.
    #[error("{path} cannot be read as {expected}: {reason}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What it should be, such as the configuration of a model.
        expected: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A field is missing.
    #[error("{path} has no field {field}, which {family} needs", path = path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// The field.
        field: String,
        /// The family of models whose configuration it should be.
        family: &'static str,
    },
    /// A field has a value that is not supported.
    #[error("{path}: {field} is {found}, but {family} supports {supported}", path = path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// The field.
        field: String,
        /// Its value, as JSON.
        found: String,
        /// What would be supported.
        supported: String,
        /// The family of models whose configuration it should be.
        family: &'static str,
    },
    /// There are fields that may change what the model computes, and that are not supported.
    #[error("{path}: {family} does not know {}", list(fields), path = path.display())]
    Unknown {
        /// The file.
        path: PathBuf,
        /// The fields.
        fields: Vec<String>,
        /// The family of models whose configuration it should be.
        family: &'static str,
    },
    /// The values contradict each other.
    #[error("{path}: {error}", path = path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// The error of the model's own configuration.
        error: ConfigError,
    },
    /// The configuration describes a larger model than that of the weights.
    #[error("{path} describes {reason}", path = path.display())]
    Size {
        /// The file.
        path: PathBuf,
        /// What it describes, and what the weights have.
        reason: String,
    },
    /// The device does not compute in the dtype that was asked for.
    #[error("{device} does not compute in {dtype:?}")]
    DType {
        /// The dtype.
        dtype: FloatDType,
        /// The device.
        device: String,
    },
    /// The weights do not fit.
    #[error("{path}: {error}", path = path.display())]
    Weights {
        /// The source of the model: a folder, a GGUF file, or a name on the Hub.
        path: PathBuf,
        /// What is wrong with its weights.
        error: WeightsError,
    },
}

impl PretrainedError {
    pub(crate) fn file(path: &Path, expected: &'static str, reason: impl ToString) -> Self {
        Self::File {
            path: path.into(),
            expected,
            reason: reason.to_string(),
        }
    }

    /// An error of the weights of the model at `source`. One that names a file keeps that path alone.
    pub(crate) fn weights(source: &Path, error: WeightsError) -> Self {
        match error {
            WeightsError::File { path, reason } => Self::file(&path, "weights", reason),
            error => Self::Weights {
                path: source.into(),
                error,
            },
        }
    }

    #[cfg(feature = "tokenizers")]
    pub(crate) fn tokenizer(path: &Path, reason: impl ToString) -> Self {
        Self::file(path, "a tokenizer", reason)
    }
}

pub(crate) type Result<T, E = PretrainedError> = std::result::Result<T, E>;
