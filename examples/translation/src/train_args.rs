//! From the options of `train` to the configuration of a new run.

use burn_attn_models::seq2seq::Seq2SeqConfig;
use example_common::error::Error;
use example_common::files::FileError;

use crate::cli::TrainArgs;
use crate::run_config::Schedule;
use crate::run_config::{DataConfig, RunConfig};
use crate::vocabulary;

/// The values of options that are not given.
struct Defaults {
    vocabulary: usize,
    d_model: usize,
    d_ff: usize,
    heads: usize,
    layers: usize,
    max_len: usize,
    dropout: f64,
    batch: usize,
    epochs: usize,
    learning_rate: f64,
    warmup: usize,
    smoothing: f64,
}

/// For the built-in corpus: tuned so that new sentences are translated right after about a minute on two CPU cores.
///
/// Its grammar has no exceptions to memorise, so dropout would only cost time.
const BUILT_IN: Defaults = Defaults {
    vocabulary: 2000,
    d_model: 96,
    d_ff: 256,
    heads: 4,
    layers: 2,
    max_len: 64,
    dropout: 0.0,
    batch: 32,
    epochs: 7,
    learning_rate: 3e-3,
    warmup: 200,
    smoothing: 0.05,
};

/// For a corpus of people's sentences, such as Tatoeba's.
const OWN: Defaults = Defaults {
    vocabulary: 8000,
    d_model: 256,
    d_ff: 1024,
    heads: 8,
    layers: 3,
    max_len: 128,
    dropout: 0.1,
    batch: 64,
    epochs: 10,
    learning_rate: 1e-3,
    warmup: 500,
    smoothing: 0.1,
};

impl TrainArgs {
    /// The configuration of a new run: the options given, and defaults that fit the corpus for the others.
    ///
    /// # Errors
    /// If the corpus cannot be found, or a value cannot work.
    pub fn config(&self) -> Result<RunConfig, Error> {
        let defaults = if self.data.is_none() { &BUILT_IN } else { &OWN };
        // The run may be resumed from another working directory.
        let file = self
            .data
            .as_ref()
            .map(|path| path.canonicalize().map_err(FileError::of("read", path)))
            .transpose()?;
        let layers = self.layers.unwrap_or(defaults.layers);
        let config = RunConfig {
            data: DataConfig {
                file,
                held_out: self.held_out.unwrap_or(400),
                fingerprint: String::new(),
            },
            // The vocabulary may turn out smaller; until it is learnt, the smallest one stands in.
            model: Seq2SeqConfig::new(vocabulary::SMALLEST)
                .with_d_model(self.d_model.unwrap_or(defaults.d_model))
                .with_n_heads(self.heads.unwrap_or(defaults.heads))
                .with_n_encoder_layers(layers)
                .with_n_decoder_layers(layers)
                .with_d_ff(self.d_ff.unwrap_or(defaults.d_ff))
                .with_dropout(self.dropout.unwrap_or(defaults.dropout))
                .with_max_len(self.max_len.unwrap_or(defaults.max_len)),
            vocabulary: self.vocabulary.unwrap_or(defaults.vocabulary),
            seed: self.seed.unwrap_or(1),
            batch: self.batch.unwrap_or(defaults.batch),
            batch_tokens: self.batch_tokens,
            epochs: self
                .epochs
                .or(self.steps.is_none().then_some(defaults.epochs)),
            steps: self.steps,
            replicas: self.replicas.unwrap_or(1),
            precision: self.precision.unwrap_or_default(),
            schedule: self.schedule.unwrap_or(Schedule::Cosine),
            learning_rate: self.learning_rate.unwrap_or(defaults.learning_rate),
            warmup: self.warmup.unwrap_or(defaults.warmup),
            smoothing: self.smoothing.unwrap_or(defaults.smoothing),
            clip: self.clip.unwrap_or(1.0),
            average: self.average,
        };
        config.validate()?;
        Ok(config)
    }
}

#[cfg(test)]
mod tests;
