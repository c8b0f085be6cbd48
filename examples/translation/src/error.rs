//! Everything that can go wrong, each in one sentence with the values that matter.

use std::path::PathBuf;

use burn_attn_models::generate::GenerateError;
use burn_attn_models::train::TrainError;
use example_common::files::FileError;
use example_common::lock::LockError;

/// Why a command could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The corpus cannot be trained on.
    #[error("{corpus}: {problem}")]
    Corpus {
        /// The corpus.
        corpus: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A checkpoint cannot be read or written.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// A folder holds no checkpoint.
    #[error("{} holds no checkpoint: train first, or name the folder of a run with --out", .0.display())]
    NoCheckpoint(PathBuf),
    /// A folder holds another run, which must not be destroyed.
    #[error(
        "{} already holds the run {name}: train --resume --out {} goes on with it, --out with another folder \
         starts anew",
        path.display(),
        path.display()
    )]
    Occupied {
        /// The folder.
        path: PathBuf,
        /// How far the run is.
        name: String,
    },
    /// A folder without a run holds what a run would replace.
    #[error("{}: it has a {name} that is of no run: choose another --out", path.display())]
    Foreign {
        /// The folder.
        path: PathBuf,
        /// What it holds.
        name: &'static str,
    },
    /// A folder cannot be locked: another process trains in it, for example.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// An option has a value that cannot work.
    #[error("{0}")]
    Option(String),
    /// There is no such device.
    #[error(transparent)]
    Device(#[from] example_common::devices::DeviceError),
    /// The model's configuration contradicts itself.
    #[error(transparent)]
    Model(#[from] burn_attn::ConfigError),
    /// A sentence cannot be translated.
    #[error("cannot translate {sentence:?}: {problem}")]
    Sentence {
        /// The sentence.
        sentence: String,
        /// Why not.
        problem: String,
    },
    /// The model cannot translate anything.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// A loss is no longer finite.
    #[error("{error}; try a lower --learning-rate than {learning_rate}")]
    Diverged {
        /// Which loss, and when.
        error: TrainError,
        /// The highest learning rate.
        learning_rate: f64,
    },
    /// A picture could not be drawn.
    #[error("cannot draw {0}")]
    Picture(String),
    /// The attention could not be drawn.
    #[error("cannot draw {0}")]
    Attention(#[from] example_common::pictures::PictureError),
    /// The terminal or a pipe cannot be used.
    #[error("{0}")]
    Stream(String),
    /// The sub-word vocabulary could not be trained or used.
    #[error("the vocabulary failed: {0}")]
    Vocabulary(String),
}
