//! One step of training: a batch, its loss, and the optimizer.

use burn::optim::GradientsParams;
use burn::tensor::Tensor;
use burn_attn_models::{
    seq2seq::Seq2Seq,
    train::{MixedPrecision, MovingAverage},
};

use super::{Trainer, mix};
use crate::batches::{self, Sample};
use crate::error::Error;
use crate::run_config::AVERAGE_EVERY;

/// Steps between two readings of the loss: reading it waits for the device.
const READ_EVERY: usize = 10;

impl Trainer {
    /// One step of the optimizer.
    pub(super) fn step(&mut self, plan: &[Vec<usize>]) -> Result<(), Error> {
        let started = (self.clock)();
        let seed = mix(self.config.seed, self.state.step as u64);
        burn_attn::seed(&self.device, seed);
        let rate = self.scheduler.step().base();
        let samples: Vec<&Sample> = plan[self.state.step_in_epoch]
            .iter()
            .map(|&index| &self.train[index])
            .collect();
        let model = self
            .model
            .take()
            .expect("the model is only away during a step");
        let tokens: usize = samples.iter().map(|sample| sample.target_tokens()).sum();
        let (loss, right, gradients) = self.gradients(&model, &samples, tokens, seed);
        let gradients = self
            .replicas
            .clip_by_global_norm(gradients, &model, self.config.clip);
        let model = self
            .replicas
            .update(&mut self.optimizers, rate, model, gradients);
        self.state.tokens += samples.iter().map(|sample| sample.tokens()).sum::<usize>();
        self.add_to_average(&model);
        self.model = Some(model);
        if let Some(right) = right {
            self.state.accuracy.add(right, tokens);
        }
        self.unread.push((loss, tokens));
        self.state.loss_tokens += tokens;
        self.state.step_in_epoch += 1;
        self.state.step += 1;
        if self.state.step.is_multiple_of(READ_EVERY) {
            self.read_losses()?;
        }
        self.state.seconds += ((self.clock)() - started).as_secs_f64();
        Ok(())
    }

    /// The loss of a batch of so many tokens to predict, how many of them were right if this is a step of which that is counted, and the
    /// gradients.
    fn gradients(
        &self,
        model: &Seq2Seq,
        samples: &[&Sample],
        tokens: usize,
        seed: u64,
    ) -> (Tensor<1>, Option<usize>, GradientsParams) {
        // Divided by the tokens of the whole batch, gradients of shards add up to its own.
        let batch = |shard: &&[&Sample]| {
            batches::batch(shard, &self.device)
                .divided_by(tokens)
                .smoothing(self.config.smoothing)
                .seed(seed)
        };
        let shards = batches::shards(samples, self.replicas.count());
        let model = MixedPrecision::new(model.clone(), self.config.precision.dtype());
        let (outputs, gradients) = self
            .replicas
            .step(&model, shards.iter().map(batch).collect());
        // Reading them waits for the device too, so they are counted as rarely as the loss is read.
        let is_counted = self.state.step.is_multiple_of(READ_EVERY);
        let right = is_counted.then(|| outputs.iter().map(batches::right).sum());
        let losses = shards.iter().zip(outputs).map(|(shard, output)| {
            let of_shard: usize = shard.iter().map(|sample| sample.target_tokens()).sum();
            output.loss * (of_shard as f64 / tokens as f64)
        });
        let loss = losses.reduce(|sum, loss| sum + loss);
        (loss.expect("a batch is not empty"), right, gradients)
    }

    /// Adds the model after a step to the moving average, if there is one, and if it is its turn.
    fn add_to_average(&mut self, model: &Seq2Seq) {
        let step = self.state.step + 1;
        let Some(steps) = self.config.average else {
            return;
        };
        if !step.is_multiple_of(AVERAGE_EVERY) {
            return;
        }
        self.average = Some(match self.average.take() {
            Some(average) => {
                // The mean of all models so far, until there are as many as were asked for.
                let models = (step / AVERAGE_EVERY) as f64;
                let most = 1.0 - AVERAGE_EVERY as f64 / steps as f64;
                average.updated(model, most.min((models - 1.0) / models))
            }
            None => MovingAverage::new(model),
        });
    }
}
