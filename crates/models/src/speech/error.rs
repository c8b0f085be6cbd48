//! Why speech cannot be recognised.

use thiserror::Error;

use crate::{generate::GenerateError, pretrained::PretrainedError};

/// Why speech cannot be recognised, in one sentence with the offending values.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SpeechError {
    /// The files do not hold such a model.
    #[error(transparent)]
    Pretrained(#[from] PretrainedError),
    /// There are more samples than the model hears at once.
    #[error("{samples} samples were given, but the model hears at most {most} at once")]
    TooLong {
        /// Number of samples.
        samples: usize,
        /// The most that the model hears at once.
        most: usize,
    },
    /// A sample is NaN or infinite.
    #[error("sample {at} is {sample}")]
    Sample {
        /// Its place, from 0.
        at: usize,
        /// The sample.
        sample: f32,
    },
    /// The model does not know the language, or knows only one.
    #[error("the model does not know the language {language:?}; it knows {known}")]
    Language {
        /// The language.
        language: String,
        /// Those that the model knows.
        known: String,
    },
    /// There is no word to align.
    #[error("nothing was said that could be aligned")]
    Silent,
    /// The tokenizer failed.
    #[error("the tokenizer failed: {0}")]
    Tokenizer(#[from] tokenizers::Error),
    /// Nothing can be generated.
    #[error(transparent)]
    Generate(#[from] GenerateError),
}
