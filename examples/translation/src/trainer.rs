//! The training loop: epochs, checkpoints, and resuming exactly where it stopped.
//!
//! It does not use burn-train's learner. On resuming, that one restarts the random numbers and the order of the data, so the
//! loss curve differs from the uninterrupted one, and it saves only at the end of an epoch.
//! Here every step begins with a seed made of the run's seed and the step's number, and its learning rate depends on nothing but
//! that number. So a checkpoint needs no generator state, and any step may be the last before a kill.

mod epoch;
mod step;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use burn::lr_scheduler::module_lr_scheduler::ModuleLrScheduler;
use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::{AdamConfig, ModuleOptimizer};
use burn::tensor::{Device, Tensor};
use burn_attn::ops::backend::in_host_memory;
use burn_attn_models::seq2seq::Seq2Seq;
use burn_attn_models::train::{MovingAverage, Replicas};

use crate::batches::{self, Sample};
use crate::checkpoint::Checkpoint;
use crate::data::{Pair, Split};
use crate::error::Error;
use crate::progress::Progress;
use crate::run_config::RunConfig;
use crate::schedule::scheduler;
use crate::state::State;
use crate::vocabulary::Vocabulary;

/// How often a checkpoint is written during a long epoch.
const SAVE_EVERY: Duration = Duration::from_secs(5 * 60);

/// The time since an arbitrary moment; it never goes back.
pub type Clock = Box<dyn Fn() -> Duration>;

/// How training ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All epochs, or all steps, are over.
    Finished,
    /// It was asked to stop, and can be resumed from here.
    Interrupted(String),
}

/// A run in progress.
pub struct Trainer {
    /// The configuration of the run.
    pub config: RunConfig,
    /// How far it is.
    pub state: State,
    /// The clock that measures how long steps take, and when to save.
    pub clock: Clock,
    vocabulary: Vocabulary,
    out: PathBuf,
    /// The autodiff device.
    device: Device,
    /// Taken out only while the optimizer holds it.
    model: Option<Seq2Seq>,
    replicas: Replicas,
    /// One optimizer per parameter shard.
    optimizers: Vec<ModuleOptimizer>,
    scheduler: ModuleLrScheduler,
    /// Starts after the first step; the initial model would only add noise.
    average: Option<MovingAverage<Seq2Seq>>,
    train: Vec<Sample>,
    validation: Vec<Sample>,
    /// Sentences to translate after an epoch: the validation set.
    to_show: Vec<Pair>,
    /// The steps of every epoch.
    epoch_steps: usize,
    /// Losses that are still on the device, with their tokens.
    unread: Vec<(Tensor<1>, usize)>,
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
        let device = device.clone().autodiff();
        burn_attn::seed(&device, mix(config.seed, u64::MAX));
        let model = config.model.init(&device);
        // Burn creates parameters when they are first used: use them before the seed changes.
        model.visit(&mut Touch);
        let samples = |pairs, set| batches::samples(pairs, &vocabulary, &config, set);
        let train = samples(&split.train, "training")?;
        let validation = samples(&split.validation, "validation")?;
        // Epochs differ in their order, not in how many steps they have.
        let epoch_steps = batches::plan(&train, config.batch_size(), config.seed, 0).len();
        // A run that goes on where replicas cannot share the CPU's threads has one.
        let replicas = match in_host_memory(&device) {
            true => config.replicas,
            false => 1,
        };
        Ok(Self {
            replicas: Replicas::new(replicas),
            optimizers: vec![optimizer(); config.replicas],
            scheduler: scheduler(&config, epoch_steps, 0)?,
            average: None,
            config,
            state: State::default(),
            clock: monotonic(),
            vocabulary,
            out: out.to_path_buf(),
            device,
            model: Some(model),
            train,
            validation,
            to_show: split.validation.clone(),
            epoch_steps,
            unread: Vec::new(),
        })
    }

    /// Resumes a run.
    pub fn resume(
        checkpoint: &Checkpoint,
        split: &Split,
        device: &Device,
        out: &Path,
    ) -> Result<Self, Error> {
        let (config, vocabulary) = (checkpoint.config.clone(), checkpoint.vocabulary()?);
        let mut run = Self::start(config, split, vocabulary, device, out)?;
        run.state = checkpoint.state.clone();
        run.model = Some(checkpoint.model(&run.device)?);
        run.optimizers = checkpoint.optimizers(&optimizer())?;
        let average = checkpoint.average(&run.device)?;
        run.average = average.as_ref().map(MovingAverage::new);
        run.scheduler = scheduler(&run.config, run.epoch_steps, run.state.step)?;
        Ok(run)
    }

    /// The number of trained parameters.
    pub fn parameters(&self) -> usize {
        self.model().num_params()
    }

    /// Trains to the end, or until `interrupted` says so after a step or a validation.
    ///
    /// # Errors
    /// If a checkpoint cannot be written, or a loss is no longer finite.
    pub fn run(
        &mut self,
        interrupted: &dyn Fn(&State) -> bool,
        progress: &Progress,
    ) -> Result<Outcome, Error> {
        let mut saved = (self.clock)();
        while !self.state.finished {
            let plan = self.plan(self.state.epoch);
            progress.begin_epoch(&self.epoch_label(), plan.len(), self.state.step_in_epoch);
            while self.state.step_in_epoch < plan.len() && !self.is_over() {
                self.step(&plan)?;
                if interrupted(&self.state) {
                    self.save()?;
                    return Ok(Outcome::Interrupted(self.state.name()));
                }
                self.show(progress);
                let is_due = (self.clock)() - saved > SAVE_EVERY;
                // The end of the epoch, or of the run, saves too.
                if is_due && self.state.step_in_epoch < plan.len() && !self.is_over() {
                    self.save()?;
                    saved = (self.clock)();
                }
            }
            self.end_epoch(progress)?;
            if interrupted(&self.state) {
                return Ok(Outcome::Interrupted(self.state.name()));
            }
            saved = (self.clock)();
        }
        Ok(Outcome::Finished)
    }

    /// The batches of an epoch.
    fn plan(&self, epoch: usize) -> Vec<Vec<usize>> {
        let size = self.config.batch_size();
        batches::plan(&self.train, size, self.config.seed, epoch)
    }

    /// Whether all epochs or all steps are over.
    fn is_over(&self) -> bool {
        let RunConfig { epochs, steps, .. } = self.config;
        epochs.is_some_and(|epochs| self.state.epoch >= epochs)
            || steps.is_some_and(|steps| self.state.step >= steps)
    }

    /// Writes a checkpoint.
    pub fn save(&mut self) -> Result<(), Error> {
        self.read_losses()?;
        Checkpoint::write(
            &self.out,
            &self.config,
            &self.vocabulary,
            self.model(),
            self.average.as_ref().map(MovingAverage::model),
            &self.optimizers,
            &self.state,
        )
    }

    /// Seconds until the end, from the speed so far.
    fn seconds_left(&self) -> Option<f64> {
        let total = self.config.last_step(self.epoch_steps)?;
        let more = total.saturating_sub(self.state.step);
        (self.state.step > 0 && !self.state.finished)
            .then(|| self.state.seconds / self.state.step as f64 * more as f64)
    }

    fn epoch_label(&self) -> String {
        let epoch = self.state.epoch + 1;
        self.config.epochs.map_or_else(
            || format!("epoch {epoch}"),
            |epochs| format!("epoch {epoch}/{epochs}"),
        )
    }

    /// Moves the bar, if there is one.
    fn show(&self, progress: &Progress) {
        let now = (self.clock)();
        if progress.is_due(now) {
            let unread: usize = self.unread.iter().map(|(_, tokens)| tokens).sum();
            let read = self.state.loss_tokens - unread;
            let loss = (read > 0).then(|| self.state.loss_sum / read as f64);
            progress.step(
                now,
                self.state.step_in_epoch,
                loss,
                self.state.tokens_per_second(),
                self.seconds_left(),
            );
        }
    }

    fn model(&self) -> &Seq2Seq {
        self.model
            .as_ref()
            .expect("the model is only away during a step")
    }
}

/// Adam as in Vaswani et al. (2017), section 5.3.
fn optimizer() -> ModuleOptimizer {
    AdamConfig::new()
        .with_beta_1(0.9)
        .with_beta_2(0.98)
        .with_epsilon(1e-9)
        .init()
}

/// The time since now.
fn monotonic() -> Clock {
    let start = Instant::now();
    Box::new(move || start.elapsed())
}

/// A seed from two numbers, with SplitMix64's mixing (Steele et al., 2014).
fn mix(seed: u64, number: u64) -> u64 {
    let mut z = seed.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Creates every parameter that does not exist yet.
struct Touch;

impl ModuleVisitor for Touch {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let _ = param.val();
    }
}

#[cfg(test)]
pub(crate) mod tests;
