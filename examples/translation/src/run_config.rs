//! Everything that determines a run, saved in each of its checkpoints.

use std::path::{Path, PathBuf};

use burn_attn_models::seq2seq::Seq2SeqConfig;
use burn_attn_models::train::{AVERAGE_EVERY, BatchSize};
use example_common::error::Error;
use example_common::input;
use serde::{Deserialize, Serialize};

use crate::data::{self, Split};
use crate::precision::Precision;
use crate::vocabulary::{self, Vocabulary};

/// How the learning rate falls after its warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Schedule {
    /// Along half a cosine, down to 2 % at the end of the epochs or steps; a run that ends within the warm-up has none
    Cosine,
    /// With one over the square root of the step, so that training needs no end
    Noam,
}

/// The configuration of a run. On one machine and device, two runs with equal configurations have the same loss curve.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunConfig {
    /// The corpus.
    pub data: DataConfig,
    /// The model.
    pub model: Seq2SeqConfig,
    /// The most tokens the vocabulary may have.
    pub vocabulary: usize,
    /// The seed of all random numbers.
    pub seed: u64,
    /// Sentence pairs per step, unless there are `batch_tokens`.
    pub batch: usize,
    /// Tokens per step, with the padding.
    pub batch_tokens: Option<usize>,
    /// Passes over the corpus, if they are limited.
    pub epochs: Option<usize>,
    /// Steps of the whole run, if they are limited.
    pub steps: Option<usize>,
    /// Replicas of the model that share a step.
    pub replicas: usize,
    /// What a step computes in.
    pub precision: Precision,
    /// How the learning rate falls.
    pub schedule: Schedule,
    /// The highest learning rate.
    pub learning_rate: f64,
    /// Steps until the highest learning rate.
    pub warmup: usize,
    /// Label smoothing.
    pub smoothing: f64,
    /// The largest norm of the whole gradient.
    pub clip: f64,
    /// The steps over which the moving average is taken that translates, if there is one.
    pub average: Option<usize>,
}

/// Which sentences to use, and how many to set aside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataConfig {
    /// A file of pairs; without one, the built-in corpus.
    pub file: Option<PathBuf>,
    /// Source sentences of a file that are set aside for the report, and as many for validation; of the built-in corpus, those set aside for
    /// validation.
    pub held_out: usize,
    /// The [`data::fingerprint`] of the corpus.
    pub fingerprint: String,
}

impl DataConfig {
    /// The corpus in words.
    pub fn name(&self) -> String {
        match &self.file {
            Some(file) => file.display().to_string(),
            None => "the built-in corpus".into(),
        }
    }

    /// Reads the corpus and splits it; `seed` chooses what is held out.
    pub fn load(&self, seed: u64) -> Result<Split, Error> {
        match &self.file {
            Some(file) => data::split(data::read_tsv(file)?, self.held_out, seed, &self.name()),
            None => data::toy(self.held_out, seed),
        }
    }
}

impl RunConfig {
    /// Checks every value, before anything expensive happens.
    ///
    /// # Errors
    /// One sentence that names the option and the value.
    pub fn validate(&self) -> Result<(), Error> {
        self.model.validate()?;
        if self.vocabulary < vocabulary::SMALLEST {
            return Err(vocabulary::too_small(self.vocabulary));
        }
        let positive = [
            ("--batch", self.batch),
            ("--replicas", self.replicas),
            ("--warmup", self.warmup),
            ("--epochs", self.epochs.unwrap_or(1)),
            ("--steps", self.steps.unwrap_or(1)),
            ("--batch-tokens", self.batch_tokens.unwrap_or(1)),
        ];
        let positive = positive.map(|(option, n)| (option, n > 0, "at least 1", n as f64));
        let above_zero = [
            ("--learning-rate", self.learning_rate),
            ("--clip", self.clip),
        ];
        let above_zero = above_zero.map(|(option, x)| {
            let is_right = x.is_finite() && x > 0.0;
            (option, is_right, "greater than 0", x)
        });
        let rate = self.learning_rate;
        let average = self.average.unwrap_or(AVERAGE_EVERY);
        let ranges = [
            ("--learning-rate", rate <= 1.0, "at most 1", rate),
            (
                "--average",
                average >= AVERAGE_EVERY,
                "at least 10 steps",
                average as f64,
            ),
            (
                "--smoothing",
                (0.0..1.0).contains(&self.smoothing),
                "in [0, 1)",
                self.smoothing,
            ),
        ];
        input::check(positive.into_iter().chain(above_zero).chain(ranges))?;
        if self.batch_tokens.is_none() && self.replicas > self.batch {
            return Err(format!(
                "--replicas must not exceed --batch ({}), got {}",
                self.batch, self.replicas
            )
            .into());
        }
        Ok(())
    }

    /// Whether the model has positions for a sentence of so many tokens: one more is for `<bos>` or `<eos>`.
    pub fn fits(&self, tokens: usize) -> bool {
        tokens < self.model.max_len
    }

    /// How much goes into a batch.
    pub fn batch_size(&self) -> BatchSize {
        self.batch_tokens
            .map_or(BatchSize::Samples(self.batch), BatchSize::Tokens)
    }

    /// Reads the corpus, learns the vocabulary, and completes the configuration with what only they determine.
    ///
    /// The vocabulary is learnt from the training part only.
    pub fn prepare(&mut self) -> Result<(Split, Vocabulary), Error> {
        let split = self.data.load(self.seed)?;
        self.data.fingerprint = data::fingerprint(&split);
        let sentences = split
            .train
            .iter()
            .flat_map(|pair| [pair.source.as_str(), pair.target.as_str()]);
        let sentences: Vec<&str> = sentences.collect();
        let vocabulary = Vocabulary::train(&sentences, self.vocabulary)?;
        self.model.vocab_size = vocabulary.len();
        self.validate()?;
        Ok((split, vocabulary))
    }

    /// Reads the corpus of a resumed run, and makes sure that it is the same.
    ///
    /// # Errors
    /// If the corpus has changed since, or cannot be read any more.
    pub fn reload(&self, out: &Path) -> Result<Split, Error> {
        let split = self.data.load(self.seed)?;
        let found = data::fingerprint(&split);
        match found == self.data.fingerprint {
            true => Ok(split),
            false => Err(format!(
                "{}: its fingerprint {found} is not that of the corpus of the run in {}, {}",
                self.data.name(),
                out.display(),
                self.data.fingerprint
            )
            .into()),
        }
    }
}
