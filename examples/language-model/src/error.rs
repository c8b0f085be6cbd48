//! What can go wrong, one sentence each.

use std::path::PathBuf;

use burn_attn_models::{
    generate::GenerateError, pretrained::PretrainedError, train::TrainError, weights::WeightsError,
};
use example_common::{devices::DeviceError, files::FileError, lock::LockError};

/// An error of a command.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
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
    Lock(#[from] LockError),
    /// There is no such device.
    #[error(transparent)]
    Device(#[from] DeviceError),
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
    /// A checkpoint cannot be read or written.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// The loss is no longer a number.
    #[error("training stopped: {0}; try a lower --learning-rate")]
    Diverged(TrainError),
}
