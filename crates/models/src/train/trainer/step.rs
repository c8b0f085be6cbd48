//! One step: a batch, its gradients, the optimizers, the moving average.

use burn::{
    module::{Module, ModuleDisplay},
    optim::GradientsParams,
    tensor::Tensor,
    train::{InferenceStep, SequenceOutput, TrainStep},
};
use serde::Serialize;

use super::{Trainer, mix, right};
use crate::train::{
    AVERAGE_EVERY, MixedPrecision, MovingAverage, TokenBatch, TrainError, TrainingData,
    by_length::shards,
};

/// Steps between two readings of the loss and the accuracy, which wait for the device.
const READ_EVERY: usize = 10;

impl<M, B, C> Trainer<M, C>
where
    M: Module + ModuleDisplay + Send,
    M: TrainStep<Input = B, Output = SequenceOutput>,
    M: InferenceStep<Input = B, Output = SequenceOutput>,
    B: TokenBatch,
    C: Serialize,
{
    pub(super) fn step(
        &mut self,
        data: &impl TrainingData<Batch = B>,
        samples: &[usize],
    ) -> Result<(), TrainError> {
        let started = (self.clock)();
        let seed = mix(self.config.seed, self.state.step as u64);
        let replicas = &self.config.replicas;
        for device in std::iter::once(&self.config.device).chain(replicas.devices()) {
            burn_attn::seed(device, seed);
        }
        let rates = self.scheduler.step();
        self.learning_rate = rates.base();
        let (loss, right, gradients, tokens) = self.gradients(data, samples, seed);
        let model = self.model.take();
        let model = model.expect("the model is only away during a step");
        let gradients = match self.config.clip {
            Some(limit) => replicas.clip_by_global_norm(gradients, &model, limit),
            None => gradients,
        };
        let model = replicas.update(&mut self.optimizers, rates, model, gradients);
        self.state.tokens += samples.iter().map(|&one| data.tokens(one)).sum::<usize>();
        if let Some(right) = right {
            self.state.accuracy.add(right, tokens);
        }
        self.unread.push((loss, tokens));
        self.state.loss_tokens += tokens;
        self.state.step_in_epoch += 1;
        self.state.step += 1;
        self.add_to_average(&model);
        self.model = Some(model);
        if self.state.step.is_multiple_of(READ_EVERY) {
            self.read_losses()?;
        }
        self.state.seconds += ((self.clock)() - started).as_secs_f64();
        Ok(())
    }

    /// The loss of a batch, how many tokens were right if this is a step in which they are counted, the gradients, and the number of tokens.
    fn gradients(
        &self,
        data: &impl TrainingData<Batch = B>,
        samples: &[usize],
        seed: u64,
    ) -> (Tensor<1>, Option<usize>, GradientsParams, usize) {
        let replicas = &self.config.replicas;
        let (count, together) = (replicas.count(), replicas.exchange.is_some());
        let shards = shards(samples, count, together, |sample| data.tokens(sample));
        let device = |replica| replicas.devices().get(replica);
        let mut batches: Vec<B> = (0..)
            .zip(shards)
            .map(|(number, shard)| data.batch(shard, device(number).unwrap_or(&self.config.device)))
            .collect();
        let counts: Vec<usize> = batches.iter_mut().map(|one| one.targets().count).collect();
        let tokens: usize = counts.iter().sum();
        // A step or a shard of images without objects has none, and a loss all the same.
        let divisor = tokens.max(1);
        let weights = batches.iter_mut().map(|one| one.targets().weights.clone());
        let weights: Vec<_> = weights.collect();
        // Divided by the tokens of the whole batch, gradients of shards add up to its own.
        let batches = batches.into_iter();
        let batches = batches
            .map(|one| one.divided_by(divisor).seed(seed))
            .collect();
        let model = MixedPrecision::new(self.model().clone(), self.config.precision);
        let (outputs, gradients) = replicas.step(&model, batches);
        // Reading them waits for the device too, so they are counted as rarely as the loss is read.
        let is_counted = self.state.step.is_multiple_of(READ_EVERY);
        let right = is_counted.then(|| {
            let outputs = outputs.iter().zip(weights);
            outputs
                .map(|(output, weights)| right(output, weights))
                .sum()
        });
        let main = self.config.device.clone().inner();
        let losses = outputs.into_iter().zip(counts).map(|(output, count)| {
            output.loss.to_device(&main) * (count.max(1) as f64 / divisor as f64)
        });
        let loss = losses.reduce(|sum, loss| sum + loss);
        let loss = loss.expect("a batch is not empty");
        (loss, right, gradients, tokens)
    }

    /// Adds the model after a step to the moving average, if there is one, and if it is its turn.
    fn add_to_average(&mut self, model: &M) {
        let Some(steps) = self.config.average else {
            return;
        };
        if !self.state.step.is_multiple_of(AVERAGE_EVERY) {
            return;
        }
        self.state.averaged += 1;
        self.average = Some(match self.average.take() {
            Some(average) => {
                // The mean of all models so far, until there are as many as were asked for.
                let models = self.state.averaged as f64;
                let most = (1.0 - AVERAGE_EVERY as f64 / steps as f64).max(0.0);
                average.updated(model, most.min((models - 1.0) / models))
            }
            None => MovingAverage::new(model),
        });
    }
}
