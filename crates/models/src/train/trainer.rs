//! The training loop: epochs, evaluation, checkpoints, and resuming exactly where a run stopped.

mod step;

use std::{
    ops::ControlFlow,
    time::{Duration, Instant},
};

use burn::{
    lr_scheduler::module_lr_scheduler::ModuleLrScheduler,
    module::{Module, ModuleDisplay, ModuleVisitor, Param},
    optim::ModuleOptimizer,
    tensor::{Device, Tensor},
    train::{InferenceStep, SequenceOutput, TrainStep},
};
use serde::Serialize;

use super::{
    AVERAGE_EVERY, Accuracy, Checkpoint, CheckpointFolder, CurvePoint, Event, MovingAverage,
    Outcome, State, TokenBatch, TrainError, TrainerConfig, TrainingData, checkpoint::MODEL,
    last_step,
};

/// The time between two checkpoints within an epoch.
const SAVE_EVERY: Duration = Duration::from_secs(5 * 60);

/// The time since an arbitrary moment; it never goes back.
pub type Clock = Box<dyn Fn() -> Duration>;

/// A training in progress. The [module docs](super) say when to take it, and have an example.
///
/// Every step begins with a seed made of the run's seed and the step's number, and its learning rate depends on that number alone. So a
/// checkpoint needs no generator state, and any step may be the last one before a kill.
pub struct Trainer<M: Module, C> {
    /// The progress of the training.
    pub state: State,
    /// Measures how long steps take, and when to save.
    pub clock: Clock,
    /// The folder of checkpoints, and the parts that the program adds to them.
    pub folder: CheckpointFolder<C>,
    /// Whether a checkpoint in the folder is of this run.
    is_saved: bool,
    /// How the model is trained; the device is the autodiff one.
    config: TrainerConfig,
    /// Taken out only while the optimizer holds it.
    model: Option<M>,
    optimizers: Vec<ModuleOptimizer>,
    scheduler: ModuleLrScheduler,
    learning_rate: f64,
    /// Begins after [`AVERAGE_EVERY`] steps; the initial model would only add noise.
    average: Option<MovingAverage<M>>,
    /// The steps of an epoch, once one has begun.
    epoch_steps: usize,
    /// Losses that are still on the device, with their tokens.
    unread: Vec<(Tensor<1>, usize)>,
}

impl<M, B, C> Trainer<M, C>
where
    M: Module + ModuleDisplay + Send,
    M: TrainStep<Input = B, Output = SequenceOutput>,
    M: InferenceStep<Input = B, Output = SequenceOutput>,
    B: TokenBatch,
    C: Serialize,
{
    /// Begins a run with the model that `init` makes on the autodiff device.
    ///
    /// # Panics
    ///
    /// When there are no optimizers, or the model is not on the first device of [replicas on devices](super::Replicas::on).
    pub fn start(
        folder: CheckpointFolder<C>,
        config: TrainerConfig,
        optimizer: impl Into<ModuleOptimizer>,
        scheduler: ModuleLrScheduler,
        init: impl FnOnce(&Device) -> M,
    ) -> Self {
        assert!(config.optimizers > 0, "Trainer: there are no optimizers");
        let device = config.device.clone().autodiff();
        if let Some(first) = config.replicas.devices().first() {
            assert!(
                *first == device,
                "Trainer: the model is on {:?}, but the first device of the replicas is {:?}",
                device.inner(),
                first.clone().inner()
            );
        }
        burn_attn::seed(&device, mix(config.seed, u64::MAX));
        let model = init(&device);
        // Burn creates parameters when they are first used: use them before the seed changes.
        model.visit(&mut Touch);
        let start = Instant::now();
        Self {
            state: State::default(),
            clock: Box::new(move || start.elapsed()),
            folder,
            is_saved: false,
            optimizers: vec![optimizer.into(); config.optimizers],
            config: TrainerConfig { device, ..config },
            model: Some(model),
            scheduler,
            learning_rate: 0.0,
            average: None,
            epoch_steps: 0,
            unread: Vec::new(),
        }
    }

    /// Continues from a checkpoint. Call it right after [`start`](Self::start) with the run's own configuration.
    ///
    /// A run that was at its end goes on if it is given more epochs or steps.
    ///
    /// # Errors
    ///
    /// When the checkpoint is of another model or optimizer.
    pub fn resume(mut self, checkpoint: &Checkpoint<C>) -> Result<Self, TrainError> {
        self.state = checkpoint.state.clone();
        self.is_saved = checkpoint.is_in(&self.folder.path);
        // Steps that are not evaluated yet still have to be.
        let is_evaluated = self.state.finished || self.state.step_in_epoch == 0;
        self.state.finished = is_evaluated && self.is_over();
        let fresh = self.model().clone();
        let average = checkpoint.average(fresh.clone())?;
        // A run that goes on without an average would keep this one for ever.
        let average = average.filter(|_| self.config.average.is_some());
        self.average = average.as_ref().map(MovingAverage::new);
        self.state.averaged = match (&self.average, self.state.averaged) {
            (None, _) => 0,
            // Earlier checkpoints do not say.
            (Some(_), 0) => self.state.step / AVERAGE_EVERY,
            (Some(_), averaged) => averaged,
        };
        self.model = Some(checkpoint.load(MODEL, fresh)?);
        self.optimizers = checkpoint.optimizers(&self.optimizers[0])?;
        for _ in 0..self.state.step {
            self.scheduler.step();
        }
        Ok(self)
    }

    /// Trains to the end, or until `observe` breaks off. It is called after each step and each evaluation.
    ///
    /// A checkpoint is written at the end of each epoch, every five minutes within one, and when `observe` breaks off.
    ///
    /// # Errors
    ///
    /// When a checkpoint cannot be written, a loss is no longer finite, or `observe` fails. Before the first step, when the folder does not exist, or has a
    /// checkpoint of another run.
    ///
    /// # Panics
    ///
    /// When the validation part has no batch or no token to predict, an epoch no step, or a step no sample; when a part of the program has a
    /// [name of the trainer's](CheckpointFolder::parts); as [`Replicas::step`](super::Replicas::step).
    pub fn run<D, E>(
        &mut self,
        data: &D,
        mut observe: impl FnMut(&Self, Event) -> Result<ControlFlow<()>, E>,
    ) -> Result<Outcome, E>
    where
        D: TrainingData<Batch = B>,
        E: From<TrainError>,
    {
        let device = self.config.device.clone().inner();
        self.folder.check_parts();
        self.folder.check_path(!self.is_saved)?;
        let mut n_batches = 0;
        let mut batches = data.validation(&device).inspect(|_| n_batches += 1);
        let predicts = batches.any(|mut batch| batch.targets().count > 0);
        drop(batches);
        assert!(n_batches > 0, "Trainer: the validation part has no batch");
        assert!(
            predicts,
            "Trainer: the validation part has no token to predict"
        );
        let mut saved = (self.clock)();
        while !self.state.finished {
            let plan = data.steps(self.state.epoch);
            assert!(!plan.is_empty(), "Trainer: an epoch has no step");
            self.epoch_steps = plan.len();
            while self.state.step_in_epoch < plan.len() && !self.is_over() {
                self.step(data, &plan[self.state.step_in_epoch])?;
                if observe(self, Event::Step)?.is_break() {
                    self.save()?;
                    return Ok(Outcome::Interrupted(self.state.name()));
                }
                let is_due = (self.clock)() - saved > SAVE_EVERY;
                // The end of the epoch, or of the run, saves too.
                if is_due && self.state.step_in_epoch < plan.len() && !self.is_over() {
                    self.save()?;
                    saved = (self.clock)();
                }
            }
            self.end_epoch(data)?;
            if observe(self, Event::Evaluated)?.is_break() {
                return Ok(Outcome::Interrupted(self.state.name()));
            }
            saved = (self.clock)();
        }
        Ok(Outcome::Finished)
    }

    /// Writes a checkpoint.
    ///
    /// # Errors
    ///
    /// When it cannot be written, or a loss is no longer finite.
    pub fn save(&mut self) -> Result<(), TrainError> {
        self.read_losses()?;
        self.folder
            .write(&self.state, self.model(), self.average(), &self.optimizers)?;
        self.is_saved = true;
        Ok(())
    }

    fn is_over(&self) -> bool {
        let TrainerConfig { epochs, steps, .. } = self.config;
        epochs.is_some_and(|epochs| self.state.epoch >= epochs)
            || steps.is_some_and(|steps| self.state.step >= steps)
    }

    /// Ends an epoch, or the part of it that there were steps for: evaluates the model and saves a checkpoint.
    fn end_epoch(&mut self, data: &impl TrainingData<Batch = B>) -> Result<(), TrainError> {
        self.read_losses()?;
        let (validation, validation_accuracy) = self.validate(data);
        let point = CurvePoint {
            epoch: self.state.epoch + 1,
            step: self.state.step,
            train: self.state.loss_sum / self.state.loss_tokens.max(1) as f64,
            validation: self.finite("validation loss", validation)?,
            train_accuracy: self.state.accuracy,
            validation_accuracy,
        };
        if self.state.step_in_epoch >= self.epoch_steps {
            self.state.epoch += 1;
            self.state.step_in_epoch = 0;
            (self.state.loss_sum, self.state.loss_tokens) = (0.0, 0);
            self.state.accuracy = Accuracy::default();
        }
        self.state.finished = self.is_over();
        self.state.curve.push(point);
        self.save()
    }

    /// The loss on the validation part, without smoothing and dropout (nats per token), and how many tokens are right.
    fn validate(&self, data: &impl TrainingData<Batch = B>) -> (f64, Accuracy) {
        let (model, device) = (self.trained(), self.config.device.clone().inner());
        let (mut sum, mut accuracy) = (0.0, Accuracy::default());
        for mut batch in data.validation(&device) {
            let targets = batch.targets();
            let (count, weights) = (targets.count, targets.weights.clone());
            let output = InferenceStep::step(&model, batch);
            accuracy.add(right(&output, weights), count);
            // Images without objects have a loss all the same, which is a sum, not a mean.
            sum += f64::from(output.loss.into_scalar::<f32>()) * count.max(1) as f64;
        }
        (sum / accuracy.tokens as f64, accuracy)
    }

    /// Adds the losses that are still on the device to the sum, in the order of the steps.
    fn read_losses(&mut self) -> Result<(), TrainError> {
        for (loss, tokens) in self.unread.drain(..) {
            self.state.loss_sum += f64::from(loss.into_scalar::<f32>()) * tokens.max(1) as f64;
        }
        self.finite("loss", self.state.loss_sum).map(drop)
    }

    fn finite(&self, name: &'static str, loss: f64) -> Result<f64, TrainError> {
        match loss.is_finite() {
            true => Ok(loss),
            false => Err(TrainError::Diverged {
                name,
                loss,
                step: self.state.step,
            }),
        }
    }
}

impl<M: Module, C> Trainer<M, C> {
    /// The model after the last step.
    pub fn model(&self) -> &M {
        let model = self.model.as_ref();
        model.expect("the model is only away during a step")
    }

    /// The moving average, if there is one yet.
    pub fn average(&self) -> Option<&M> {
        self.average.as_ref().map(MovingAverage::model)
    }

    /// The model that is evaluated, without autodiff: the average, or the model after the last step if there is none.
    pub fn trained(&self) -> M {
        self.average().unwrap_or(self.model()).valid()
    }

    /// The steps of an epoch, once one has begun.
    pub fn epoch_steps(&self) -> usize {
        self.epoch_steps
    }

    /// The learning rate of the last step, of parameters in no group of the schedule.
    pub fn learning_rate(&self) -> f64 {
        self.learning_rate
    }

    /// The mean training loss of those steps of the epoch under way whose losses were read, if there are any.
    pub fn loss(&self) -> Option<f64> {
        let unread: usize = self.unread.iter().map(|(_, tokens)| tokens).sum();
        let read = self.state.loss_tokens - unread;
        (read > 0).then(|| self.state.loss_sum / read as f64)
    }

    /// Seconds until the end at the speed so far.
    pub fn seconds_left(&self) -> Option<f64> {
        let total = last_step(self.config.epochs, self.config.steps, self.epoch_steps)?;
        let more = total.saturating_sub(self.state.step);
        (self.state.step > 0 && self.epoch_steps > 0 && !self.state.finished)
            .then(|| self.state.seconds / self.state.step as f64 * more as f64)
    }
}

/// How many tokens a model predicted right, each from the right tokens before it. Those with weight 0 do not count.
fn right(output: &SequenceOutput, weights: Tensor<2>) -> usize {
    let predicted = output.logits.clone().argmax(2).squeeze_dim::<2>(2);
    let right = predicted.equal(output.targets.clone());
    let right = right.bool_and(weights.greater_elem(0.5));
    right.int().sum().into_scalar::<i64>() as usize
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
