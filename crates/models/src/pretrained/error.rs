//! Why a folder cannot become a model.

use std::path::PathBuf;

use burn_attn::ConfigError;
use thiserror::Error;

use crate::weights::WeightsError;

/// Why a folder cannot become a model, as one sentence with the offending fields and values.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PretrainedError {
    /// What is no folder is no name whose files are to be had either.
    #[error("{source} is no folder, and {reason}", source = from.display())]
    Source {
        /// What was to be the folder or the name.
        from: PathBuf,
        /// Why a name does not help.
        reason: String,
    },
    /// The configuration is not there, or no JSON object.
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
        /// Whose configuration it should be.
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
        /// Whose configuration it should be.
        family: &'static str,
    },
    /// There are fields that may change what the model computes and that nothing here reads.
    #[error("{path}: {family} does not know {}", fields.join(", "), path = path.display())]
    Unknown {
        /// The file.
        path: PathBuf,
        /// The fields.
        fields: Vec<String>,
        /// Whose configuration it should be.
        family: &'static str,
    },
    /// The values contradict each other.
    #[error("{path}: {error}", path = path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// What the model's own configuration says.
        error: ConfigError,
    },
    /// The configuration is of another model than the weights.
    #[error(
        "{path} describes states or heads of width {width}, but no tensor of the weights is wider than {widest}",
        path = path.display()
    )]
    Width {
        /// The file.
        path: PathBuf,
        /// Of the states, or of all heads together.
        width: usize,
        /// The largest size of a tensor.
        widest: usize,
    },
    /// `tokenizer.json` is not there, or no tokenizer.
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
