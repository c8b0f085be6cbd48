//! What a training takes: data, and how the model is trained.

use burn::tensor::{Device, FloatDType};

use super::{Replicas, TokenBatch};

/// Steps between two models of the moving average.
pub const AVERAGE_EVERY: usize = 10;

/// The data of a training. Whatever it returns depends on nothing but the arguments, otherwise a resumed run has another loss curve.
pub trait TrainingData {
    /// What the model's steps take.
    type Batch: TokenBatch;

    /// The training samples of every step of an epoch, which has one or more. Epochs may differ in their order, not in the number of steps.
    fn steps(&self, epoch: usize) -> Vec<Vec<usize>>;

    /// The number of tokens of a training sample that the model reads and predicts.
    fn tokens(&self, sample: usize) -> usize;

    /// A batch of training samples on a device.
    fn batch(&self, samples: &[usize], device: &Device) -> Self::Batch;

    /// The batches of the validation part on a device, one or more, with one token to predict or more.
    fn validation(&self, device: &Device) -> impl Iterator<Item = Self::Batch>;
}

/// How a model is trained, besides the optimizer and the learning rate.
#[derive(Debug)]
pub struct TrainerConfig {
    /// Where the model is.
    pub device: Device,
    /// What computes a step.
    pub replicas: Replicas,
    /// Optimizers that divide the parameters among themselves and run on the threads of the replicas. A resumed run keeps their number.
    pub optimizers: usize,
    /// The seed of the initial parameters and of dropout.
    pub seed: u64,
    /// Passes over the training part at most.
    pub epochs: Option<usize>,
    /// Steps at most.
    pub steps: Option<usize>,
    /// The dtype in which a step computes; see [`MixedPrecision`](super::MixedPrecision).
    pub precision: FloatDType,
    /// The largest norm of the whole gradient.
    pub clip: Option<f64>,
    /// Steps over which the evaluated [`MovingAverage`](super::MovingAverage) is taken, with one model every [`AVERAGE_EVERY`] steps. It is
    /// the mean of these models until there are as many steps, then an exponential average. With fewer than [`AVERAGE_EVERY`], it is the newest model.
    pub average: Option<usize>,
}

impl TrainerConfig {
    /// One replica in f32 on `device`, without end, clipping and average.
    pub fn new(device: &Device) -> Self {
        Self {
            device: device.clone(),
            replicas: Replicas::new(1),
            optimizers: 1,
            seed: 0,
            epochs: None,
            steps: None,
            precision: FloatDType::F32,
            clip: None,
            average: None,
        }
    }
}

/// The last step of a run whose epochs have `epoch_steps` steps: by the epochs or by the steps, whichever ends first.
pub fn last_step(epochs: Option<usize>, steps: Option<usize>, epoch_steps: usize) -> Option<usize> {
    let by_epochs = epochs.map(|epochs| epochs.saturating_mul(epoch_steps));
    by_epochs.into_iter().chain(steps).min()
}

/// The last thing that [`Trainer::run`](super::Trainer::run) did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A step.
    Step,
    /// The evaluation at the end of an epoch or of the run, which is the last point of the curve and in the newest checkpoint.
    Evaluated,
}

/// How [`Trainer::run`](super::Trainer::run) ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All epochs or steps are over.
    Finished,
    /// The observer stopped the run, which can be resumed from the newest checkpoint. The state of this checkpoint has this [name](super::State::name).
    Interrupted(String),
}
