//! Everything that determines a run, saved in each of its checkpoints.

use std::path::{Path, PathBuf};

use burn_attn_models::seq2seq::Seq2SeqConfig;
use burn_attn_models::train::{AVERAGE_EVERY, BatchSize};
use example_common::error::Error;
use example_common::files::FileError;
use example_common::input;
use serde::{Deserialize, Serialize};

use crate::cli::{Recipe, TrainArgs};
use crate::data::{self, Split};
use crate::vocabulary::{self, Vocabulary};

/// The configuration of a run. On one machine and device, two runs with equal configurations have the same loss curve, on a GPU as long as
/// Burn's autotune chooses the same kernels.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunConfig {
    /// The corpus.
    pub data: DataConfig,
    /// The model.
    pub model: Seq2SeqConfig,
    /// Replicas of the model that share a step.
    pub replicas: usize,
    /// How it is trained.
    #[serde(flatten)]
    pub recipe: Recipe,
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
    /// The configuration of a new run.
    ///
    /// # Errors
    /// If the corpus cannot be found, or a value cannot work.
    pub fn new(args: &TrainArgs) -> Result<Self, Error> {
        // The run may be resumed from another working directory.
        let whole = |path: &PathBuf| path.canonicalize().map_err(FileError::of("read", path));
        let config = Self {
            data: DataConfig {
                file: args.data.as_ref().map(whole).transpose()?,
                held_out: args.held_out,
                fingerprint: String::new(),
            },
            // The vocabulary may turn out smaller; until it is learnt, the smallest one stands in.
            model: Seq2SeqConfig::new(vocabulary::SMALLEST)
                .with_d_model(args.d_model)
                .with_n_heads(args.heads)
                .with_n_encoder_layers(args.layers)
                .with_n_decoder_layers(args.layers)
                .with_d_ff(args.d_ff)
                .with_dropout(args.dropout)
                .with_max_len(args.max_len),
            replicas: args.replicas.unwrap_or(1),
            recipe: args.recipe.clone(),
        };
        config.validate()?;
        Ok(config)
    }

    /// Checks every value, before anything expensive happens.
    ///
    /// # Errors
    /// One sentence that names the option and the value.
    pub fn validate(&self) -> Result<(), Error> {
        self.model.validate()?;
        let (replicas, recipe) = (self.replicas, &self.recipe);
        if recipe.vocabulary < vocabulary::SMALLEST {
            return Err(vocabulary::too_small(recipe.vocabulary));
        }
        let positive = [
            ("--batch", recipe.batch),
            ("--replicas", replicas),
            ("--warmup", recipe.warmup),
            ("--epochs", recipe.epochs.unwrap_or(1)),
            ("--steps", recipe.steps.unwrap_or(1)),
            ("--batch-tokens", recipe.batch_tokens.unwrap_or(1)),
        ];
        let positive = positive.map(|(option, n)| (option, n > 0, "at least 1", n as f64));
        let (rate, clip, smoothing) = (recipe.learning_rate, recipe.clip, recipe.smoothing);
        let is_positive = |x: f64| x.is_finite() && x > 0.0;
        let average = recipe.average.unwrap_or(AVERAGE_EVERY);
        let is_average = average >= AVERAGE_EVERY;
        let is_smoothing = (0.0..1.0).contains(&smoothing);
        input::check(positive.into_iter().chain([
            ("--learning-rate", is_positive(rate), "greater than 0", rate),
            ("--clip", is_positive(clip), "greater than 0", clip),
            ("--learning-rate", rate <= 1.0, "at most 1", rate),
            ("--average", is_average, "at least 10 steps", average as f64),
            ("--smoothing", is_smoothing, "in [0, 1)", smoothing),
        ]))?;
        if recipe.batch_tokens.is_none() && replicas > recipe.batch {
            let batch = recipe.batch;
            return Err(
                format!("--replicas must not exceed --batch ({batch}), got {replicas}").into(),
            );
        }
        Ok(())
    }

    /// Whether the model has positions for a sentence of so many tokens: one more is for `<bos>` or `<eos>`.
    pub fn fits(&self, tokens: usize) -> bool {
        tokens < self.model.max_len
    }

    /// How much goes into a batch.
    pub fn batch_size(&self) -> BatchSize {
        let samples = BatchSize::Samples(self.recipe.batch);
        self.recipe.batch_tokens.map_or(samples, BatchSize::Tokens)
    }

    /// Reads the corpus, learns the vocabulary, and completes the configuration with what only they determine.
    ///
    /// The vocabulary is learnt from the training part only.
    pub fn prepare(&mut self) -> Result<(Split, Vocabulary), Error> {
        let split = self.data.load(self.recipe.seed)?;
        self.data.fingerprint = data::fingerprint(&split);
        let sentences = split
            .train
            .iter()
            .flat_map(|pair| [pair.source.as_str(), pair.target.as_str()]);
        let sentences: Vec<&str> = sentences.collect();
        let vocabulary = Vocabulary::train(&sentences, self.recipe.vocabulary)?;
        self.model.vocab_size = vocabulary.len();
        self.validate()?;
        Ok((split, vocabulary))
    }

    /// Reads the corpus of a resumed run, and makes sure that it is the same.
    ///
    /// # Errors
    /// If the corpus has changed since, or cannot be read any more.
    pub fn reload(&self, out: &Path) -> Result<Split, Error> {
        let split = self.data.load(self.recipe.seed)?;
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

#[cfg(test)]
mod tests;
