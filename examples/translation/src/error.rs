//! Everything that can go wrong, each in one sentence with the values that matter.

use std::io;
use std::path::{Path, PathBuf};

use burn_attn_models::generate::GenerateError;
use example_common::lock::LockError;

/// Why a command could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder could not be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// What was tried, such as `read`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Lines of the corpus are not sentence pairs.
    #[error(
        "{}: {bad} of {lines} lines {} {listed}",
        path.display(),
        if *bad == 1 { "is not a sentence pair:" } else { "are not sentence pairs:" }
    )]
    Lines {
        /// The corpus.
        path: PathBuf,
        /// How many there are.
        bad: usize,
        /// All lines.
        lines: usize,
        /// What is wrong with the first of them.
        listed: String,
    },
    /// The corpus as a whole cannot be trained on.
    #[error("{corpus}: {problem}")]
    Corpus {
        /// The corpus.
        corpus: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A checkpoint cannot be read.
    #[error("{} is not a checkpoint of this program: {problem}", path.display())]
    Checkpoint {
        /// The checkpoint or the file in it.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A folder holds no checkpoint.
    #[error("{} holds no checkpoint: train first, or name the folder of a run with --out", .0.display())]
    NoCheckpoint(PathBuf),
    /// A folder holds another run, which must not be destroyed.
    #[error(
        "{} already holds the run {checkpoint}: train --resume --out {} goes on with it, --out with another folder \
         starts anew",
        path.display(),
        path.display()
    )]
    Occupied {
        /// The folder.
        path: PathBuf,
        /// Its newest checkpoint.
        checkpoint: String,
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
    /// The corpus of a run has changed.
    #[error(
        "{corpus} (fingerprint {found}) is not the corpus of the run in {}, whose fingerprint is {was}",
        path.display()
    )]
    OtherCorpus {
        /// The folder of the run.
        path: PathBuf,
        /// The corpus that was read.
        corpus: String,
        /// Its fingerprint.
        found: String,
        /// The fingerprint of the run's own.
        was: String,
    },
    /// An option contradicts the run to resume.
    #[error("cannot resume with {option} {given}: the run in {} was started with {was}", path.display())]
    Contradiction {
        /// The folder of the run.
        path: PathBuf,
        /// The option.
        option: &'static str,
        /// The value given.
        given: String,
        /// The value of the run.
        was: String,
    },
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
    /// A checkpoint cannot be written, and not because of a file.
    #[error("cannot write {}: {problem}", path.display())]
    NotWritten {
        /// The checkpoint.
        path: PathBuf,
        /// Why not.
        problem: String,
    },
    /// A loss is no longer finite.
    #[error(
        "the {name} is {loss} by step {step}: training has diverged; try a lower --learning-rate than {learning_rate}"
    )]
    Diverged {
        /// Which loss.
        name: &'static str,
        /// Its value.
        loss: f64,
        /// The last step.
        step: usize,
        /// The highest learning rate.
        learning_rate: f64,
    },
    /// A picture could not be drawn.
    #[error("cannot draw {0}")]
    Picture(String),
    /// The attention could not be drawn.
    #[error("cannot draw {0}")]
    Attention(#[from] example_common::pictures::PictureError),
    /// The terminal, a pipe or Ctrl-C cannot be used.
    #[error("{0}")]
    Stream(String),
    /// The sub-word vocabulary could not be trained or used.
    #[error("the vocabulary failed: {0}")]
    Vocabulary(String),
}

impl Error {
    /// Wraps an I/O error with the path it is about, for `map_err`.
    pub fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::File {
            action,
            path,
            source,
        }
    }
}
