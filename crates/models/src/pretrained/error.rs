//! Why a folder cannot become a model.

use std::path::{Path, PathBuf};

use burn::tensor::FloatDType;
use burn_attn::ConfigError;
use thiserror::Error;

use crate::weights::{WeightsError, list};

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
    /// The configuration is missing, or not a JSON object.
    #[error("{path} cannot be read as the configuration of a model: {reason}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
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
    /// The configuration belongs to another model than the weights.
    #[error(
        "{path} describes states or heads of width {width}, but no tensor of the weights is wider than {widest}",
        path = path.display()
    )]
    Width {
        /// The file.
        path: PathBuf,
        /// The width of the states, or of all heads together.
        width: usize,
        /// The largest size of a tensor.
        widest: usize,
    },
    /// The table of positions would be larger than the model.
    #[error(
        "{path} describes {positions} positions, whose table would have {table} numbers, more than the {weights} of the weights; \
         lower max_position_embeddings, or the factor of its scaling, to the longest text that is needed",
        path = path.display()
    )]
    Positions {
        /// The file.
        path: PathBuf,
        /// Positions that heads rotate.
        positions: usize,
        /// Numbers of the table.
        table: usize,
        /// Numbers of all tensors.
        weights: usize,
    },
    /// The device does not compute in the dtype that was asked for.
    #[error("{device} does not compute in {dtype:?}")]
    DType {
        /// The dtype.
        dtype: FloatDType,
        /// The device.
        device: String,
    },
    /// `tokenizer.json` is missing, or not a tokenizer.
    #[error("{path} cannot be read as a tokenizer: {reason}", path = path.display())]
    Tokenizer {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The weights do not fit.
    #[error(transparent)]
    Weights(#[from] WeightsError),
}

impl PretrainedError {
    pub(crate) fn file(path: &Path, reason: impl ToString) -> Self {
        Self::File {
            path: path.into(),
            reason: reason.to_string(),
        }
    }
}

/// The result of reading a published model.
pub(crate) type Result<T, E = PretrainedError> = std::result::Result<T, E>;
