//! Training the translator: `burn_attn_models::train::Trainer` with this program's model, batches, schedule and lines.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use burn::optim::AdamConfig;
use burn::tensor::Device;
use burn_attn::ops::backend::in_host_memory;
use burn_attn_models::seq2seq::Seq2Seq;
use burn_attn_models::train::{
    self, Accuracy, CheckpointFolder, Event, Outcome, Replicas, State, TrainError, TrainerConfig,
    TrainingData,
};
use example_common::error::Error;
use example_common::text::printable;

use crate::batches::Batches;
use crate::checkpoint::{self, Checkpoint, TOKENIZER};
use crate::curve;
use crate::data::{Pair, Split};
use crate::progress::{Progress, duration};
use crate::run_config::RunConfig;
use crate::schedule::scheduler;
use crate::sentence::LONGEST;
use crate::translator;
use crate::vocabulary::Vocabulary;

/// A run in progress.
pub struct Trainer {
    /// The training loop.
    pub training: train::Trainer<Seq2Seq, RunConfig>,
    batches: Batches,
    vocabulary: Vocabulary,
    /// Sentences to translate after an epoch: the validation set.
    to_show: Vec<Pair>,
}

impl Trainer {
    /// Begins a run.
    pub fn start(
        config: RunConfig,
        split: &Split,
        vocabulary: Vocabulary,
        device: &Device,
        out: &Path,
    ) -> Result<Self, Error> {
        let batches = Batches::new(split, &vocabulary, &config)?;
        // A run that is resumed on another device than the CPU's threads has one replica.
        let replicas = match in_host_memory(device) {
            true => config.replicas,
            false => 1,
        };
        let recipe = &config.recipe;
        let trainer = TrainerConfig {
            replicas: Replicas::new(replicas),
            optimizers: config.replicas,
            seed: recipe.seed,
            epochs: recipe.epochs,
            steps: recipe.steps,
            precision: recipe.precision.dtype(),
            clip: Some(recipe.clip),
            average: recipe.average,
            ..TrainerConfig::new(device)
        };
        // Adam as in Vaswani et al. (2017), section 5.3.
        let optimizer = AdamConfig::new()
            .with_beta_1(0.9)
            .with_beta_2(0.98)
            .with_epsilon(1e-9)
            .init();
        let scheduler = scheduler(&config, batches.steps(0).len())?;
        let model = config.model.clone();
        let json = vocabulary.to_json()?.into_bytes();
        let folder = CheckpointFolder {
            path: out.to_path_buf(),
            config,
            parts: BTreeMap::from([(TOKENIZER.into(), json)]),
        };
        let init = |device: &Device| model.init(device);
        Ok(Self {
            training: train::Trainer::start(folder, trainer, optimizer, scheduler, init),
            batches,
            vocabulary,
            to_show: split.validation.clone(),
        })
    }

    /// Resumes a run.
    pub fn resume(
        checkpoint: &Checkpoint,
        split: &Split,
        device: &Device,
        out: &Path,
    ) -> Result<Self, Error> {
        let vocabulary = checkpoint::vocabulary(checkpoint)?;
        let run = Self::start(checkpoint.config.clone(), split, vocabulary, device, out)?;
        Ok(Self {
            training: run.training.resume(checkpoint)?,
            ..run
        })
    }

    /// The configuration of the run.
    pub fn config(&self) -> &RunConfig {
        &self.training.folder.config
    }

    /// Trains to the end, or until `interrupted` says so after a step or a validation.
    ///
    /// # Errors
    /// If a checkpoint cannot be written, or a loss is no longer finite.
    pub fn run(
        &mut self,
        interrupted: impl Fn(&State) -> bool,
        progress: &Progress,
    ) -> Result<Outcome, Error> {
        let Self {
            training,
            batches,
            vocabulary,
            to_show,
        } = self;
        let rate = training.folder.config.recipe.learning_rate;
        let outcome = training.run(batches, |training, event| {
            if event == Event::Evaluated {
                let curve = &training.state.curve;
                curve::draw(curve, &training.folder.path.join(curve::FILE))?;
                let sample = sample(training, vocabulary, to_show)?;
                progress.line(&(figures(training) + &sample));
            }
            if interrupted(&training.state) {
                return Ok(ControlFlow::Break(()));
            }
            if event == Event::Step {
                show(training, progress);
            }
            Ok(ControlFlow::Continue(()))
        });
        outcome.map_err(|error: Error| match error.downcast_ref() {
            Some(TrainError::Diverged { .. }) => {
                format!("{error}; try a lower --learning-rate than {rate}").into()
            }
            _ => error,
        })
    }
}

/// Moves the bar, if there is one.
fn show(training: &train::Trainer<Seq2Seq, RunConfig>, progress: &Progress) {
    let state = &training.state;
    let label = label(state.epoch + 1, &training.folder.config);
    let steps = [state.step_in_epoch, training.epoch_steps()];
    progress.step((training.clock)(), &label, steps, || {
        // No loss has been read yet in the first steps.
        let loss = training.loss().map(|loss| format!("loss {loss:.3}, "));
        let loss = loss.unwrap_or_default();
        let speed = state.tokens_per_second();
        format!("{loss}{speed:.0} tokens/s{}", left(training))
    });
}

/// The line at the end of an epoch.
fn figures(training: &train::Trainer<Seq2Seq, RunConfig>) -> String {
    let state = &training.state;
    let Some(point) = state.curve.last() else {
        return String::new();
    };
    let percent = |accuracy: Accuracy| match accuracy.fraction() {
        Some(part) => format!(" ({:.1} % of tokens)", 100.0 * part),
        None => String::new(),
    };
    format!(
        "{}: loss {:.3}{}, validation {:.3}{}{}, {:.0} tokens/s{}",
        label(point.epoch, &training.folder.config),
        point.train,
        percent(point.train_accuracy),
        point.validation,
        percent(point.validation_accuracy),
        if state.is_best() { ", the best" } else { "" },
        state.tokens_per_second(),
        left(training),
    )
}

fn label(epoch: usize, config: &RunConfig) -> String {
    match config.recipe.epochs {
        Some(epochs) => format!("epoch {epoch}/{epochs}"),
        None => format!("epoch {epoch}"),
    }
}

fn left(training: &train::Trainer<Seq2Seq, RunConfig>) -> String {
    let seconds = training.seconds_left();
    seconds.map_or_else(String::new, |left| format!(", {} left", duration(left)))
}

/// A sample translation from the validation set, a different one each epoch: a line, or nothing if the sentence is too long.
fn sample(
    training: &train::Trainer<Seq2Seq, RunConfig>,
    vocabulary: &Vocabulary,
    to_show: &[Pair],
) -> Result<String, Error> {
    // A prime, so that neighbours in the corpus are far apart.
    let pair = &to_show[(training.state.curve.len() - 1) * 7919 % to_show.len()];
    let tokens = vocabulary.encode(&pair.source)?;
    if !training.folder.config.fits(tokens.len()) {
        return Ok(String::new());
    }
    let translation = translator::search(&training.trained(), &[&tokens], 1)?.remove(0);
    let translation = vocabulary.decode(&translation)?;
    let [source, translation] = [&pair.source, &translation].map(|text| printable(text, LONGEST));
    Ok(format!("\n  {source} → {translation}"))
}

#[cfg(test)]
pub(crate) mod tests;
