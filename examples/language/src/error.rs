//! What can go wrong, one sentence each.

use std::path::PathBuf;

use burn_attn_models::{
    chat::ChatError, generate::GenerateError, pretrained::PretrainedError, sentences::EncodeError,
};
use example_common::{
    devices::DeviceError, files::FileError, lock::LockError, pictures::PictureError,
};

use crate::smiles::SmilesError;

/// An error of one of the programs.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A default model or file is not there.
    #[error(
        "{} is not there: in the folder of the repository, `cargo xtask fetch {name}` fetches it; or name {instead}",
        path.display()
    )]
    NotFetched {
        /// Where it would be.
        path: PathBuf,
        /// What to fetch.
        name: &'static str,
        /// What else can be named.
        instead: &'static str,
    },
    /// There is no fine-tuned model.
    #[error("there is no model in {}: `{program} train` makes one; --model names another folder", path.display())]
    NotTrained {
        /// Where it would be.
        path: PathBuf,
        /// What makes it.
        program: &'static str,
    },
    /// A fine-tuned model cannot be read or written.
    #[error("{}: {problem}", path.display())]
    Model {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// Training failed.
    #[error("training failed: {0}")]
    Training(String),
    /// Options that cannot work, or contradict each other.
    #[error("{0}")]
    Option(String),
    /// A text cannot be read by the model.
    #[error("{}: {problem}", shortened(text))]
    Text {
        /// The text.
        text: String,
        /// Why not.
        problem: String,
    },
    /// A text has a token that the model does not know.
    #[error(
        "the tokenizer makes the token {token} ({name:?}) of this text, but the model knows {vocab_size} tokens"
    )]
    UnknownToken {
        /// The token.
        token: u32,
        /// What the tokenizer calls it.
        name: String,
        /// How many tokens the model knows, those below this number.
        vocab_size: usize,
    },
    /// The index on the disk cannot be used.
    #[error("{} is not an index of this program: {problem}; remove it to make a new one", path.display())]
    Index {
        /// The index.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The model cannot answer.
    #[error(transparent)]
    Chat(#[from] ChatError),
    /// A reaction cannot be read.
    #[error(transparent)]
    Smiles(#[from] SmilesError),
    /// A folder cannot be locked: another process trains in it, for example.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// There is no such device.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The source does not hold such a model.
    #[error(transparent)]
    Pretrained(#[from] PretrainedError),
    /// Nothing can be generated.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// The tokenizer failed.
    #[error("the tokenizer failed: {0}")]
    Tokenizer(#[from] tokenizers::Error),
    /// A text cannot become a vector.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The attention cannot be drawn.
    #[error("cannot draw {0}")]
    Picture(#[from] PictureError),
}

impl Error {
    /// An error about a text.
    pub fn text(text: &str, problem: impl Into<String>) -> Self {
        Self::Text {
            text: text.into(),
            problem: problem.into(),
        }
    }
}

/// The beginning of a text, in quotation marks.
fn shortened(text: &str) -> String {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}
