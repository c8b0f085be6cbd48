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
    /// There are more samples than the model reads at once.
    #[error("{samples} samples were given, but the model reads at most {most} at once")]
    TooLong {
        /// Number of samples.
        samples: usize,
        /// The most that the model reads at once.
        most: usize,
    },
    /// The recording is shorter than a frame.
    #[error("{samples} samples were given, but a frame has {least}")]
    TooShort {
        /// Number of samples.
        samples: usize,
        /// Samples of a frame.
        least: usize,
    },
    /// The recording has another sample rate than those that the model was trained on.
    #[error(
        "the recording has {found} samples a second, but the model was trained on {expected}: resample it"
    )]
    SampleRate {
        /// Samples a second of the recording.
        found: usize,
        /// The sample rate of the model.
        expected: usize,
    },
    /// A recording of a batch has no samples.
    #[error("recording {0} has no samples")]
    Empty(usize),
    /// There is something wrong with a recording of a batch.
    #[error("recording {0}: {1}")]
    Recording(usize, Box<Self>),
    /// A sample is NaN or infinite.
    #[error("sample {at} is {sample}")]
    Sample {
        /// Its place, from 0.
        at: usize,
        /// The sample.
        sample: f32,
    },
    /// The model does not know the language.
    #[error("the model does not know the language {language:?}; it knows {known}")]
    Language {
        /// The language.
        language: String,
        /// The languages that the model knows.
        known: String,
    },
    /// A language was given for a model that knows only one.
    #[error("the model knows one language only, so that none can be given, such as {0:?}")]
    OneLanguage(String),
    /// There are no tokens, or no frames, to align.
    #[error(
        "there is nothing to align: the text has {tokens} tokens, and the recording {frames} frames of 20 ms"
    )]
    NothingToAlign {
        /// Tokens of the text.
        tokens: usize,
        /// Whole frames of the recording.
        frames: usize,
    },
    /// The model's files name a head for alignment that the model does not have, or none.
    #[error(
        "generation_config.json has alignment_heads {heads:?}, but the model has {n_heads} heads in {n_layers} layers"
    )]
    AlignmentHeads {
        /// Layers and heads.
        heads: Vec<(usize, usize)>,
        /// Heads of a layer.
        n_heads: usize,
        /// Layers of the decoder.
        n_layers: usize,
    },
    /// The tokenizer failed.
    #[error("the tokenizer failed: {0}")]
    Tokenizer(#[from] tokenizers::Error),
    /// Nothing can be generated.
    #[error(transparent)]
    Generate(#[from] GenerateError),
}

impl SpeechError {
    /// Refuses samples that are not finite.
    pub(super) fn check(samples: &[f32]) -> Result<(), Self> {
        match samples.iter().position(|sample| !sample.is_finite()) {
            Some(at) => Err(Self::Sample {
                at,
                sample: samples[at],
            }),
            None => Ok(()),
        }
    }
}
