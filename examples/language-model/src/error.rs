//! What can go wrong, one sentence each.

use std::{io, path::PathBuf};

use burn_attn_models::{
    generate::GenerateError, pretrained::PretrainedError, weights::WeightsError,
};

/// An error of a command.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The text cannot be trained on.
    #[error("cannot train on {}: {problem}", path.display())]
    Text {
        /// The text.
        path: PathBuf,
        /// Why not.
        problem: String,
    },
    /// Options that cannot work, or contradict each other.
    #[error("{0}")]
    Option(String),
    /// The folder holds a run already, or none.
    #[error("{}: {problem}", path.display())]
    Run {
        /// The folder.
        path: PathBuf,
        /// Why not.
        problem: String,
    },
    /// A folder cannot be locked: another process trains in it, for example.
    #[error(transparent)]
    Lock(#[from] example_common::lock::LockError),
    /// There is no such device.
    #[error(transparent)]
    Device(#[from] example_common::devices::DeviceError),
    /// The model's configuration contradicts itself.
    #[error(transparent)]
    Model(#[from] burn_attn::ConfigError),
    /// The folder does not hold a model.
    #[error(transparent)]
    Pretrained(#[from] PretrainedError),
    /// The weights cannot be written.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// The vocabulary could not be trained or used.
    #[error("the vocabulary failed: {0}")]
    Vocabulary(#[from] tokenizers::Error),
    /// A prompt cannot be continued.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// Burn's learner stopped.
    #[error("training stopped: {0}")]
    Training(String),
}

impl Error {
    /// Wraps an I/O error with the path it is about, for `map_err`.
    pub fn file(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File {
            action,
            path: path.into(),
            source,
        }
    }
}
