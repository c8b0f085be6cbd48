//! One step of training: a batch, its loss, and the optimizer.

use burn::optim::GradientsParams;
use burn_attn_models::loss::smoothed_cross_entropy;

use super::{Trainer, mix};
use crate::batches::{Batch, Sample};
use crate::clip::clip_by_global_norm;
use crate::error::Error;
use crate::minutes::{self, Timing};
use crate::run_config::RunConfig;

/// Steps between two readings of the loss: reading it waits for the device.
const READ_EVERY: usize = minutes::TIMED;

impl Trainer {
    /// One step of the optimizer.
    pub(super) fn step(&mut self, plan: &[Vec<usize>]) -> Result<(), Error> {
        let started = (self.clock)();
        burn_attn::seed(&self.device, mix(self.config.seed, self.state.step as u64));
        let samples: Vec<&Sample> = plan[self.state.step_in_epoch]
            .iter()
            .map(|&index| &self.train[index])
            .collect();
        let batch = Batch::new(&samples, &self.device);
        let rate = self.learning_rate();
        let model = self
            .model
            .take()
            .expect("the model is only away during a step");
        let logits = model.forward(batch.source, batch.source_lengths, batch.input);
        let tokens = batch.target_tokens;
        let loss = smoothed_cross_entropy(
            logits,
            batch.expected,
            batch.weights,
            tokens,
            self.config.smoothing,
        );
        let gradients = GradientsParams::from_grads(loss.surrogate.backward(), &model);
        let gradients = clip_by_global_norm(gradients, &model, self.config.clip);
        self.model = Some(self.optimizer.step(rate, model, gradients));
        self.unread.push((loss.value, tokens));
        self.state.loss_tokens += tokens;
        self.state.tokens += batch.tokens;
        self.state.step_in_epoch += 1;
        self.state.step += 1;
        if self.state.step.is_multiple_of(READ_EVERY) {
            self.read_losses()?;
        }
        self.state.seconds += ((self.clock)() - started).as_secs_f64();
        if self.state.step.is_multiple_of(READ_EVERY)
            && self.state.step <= self.state.timed_from + minutes::DECIDED_AFTER
        {
            self.state.timings.push(Timing {
                seconds: self.state.seconds,
                tokens: self.state.tokens,
            });
        }
        Ok(())
    }

    /// The learning rate of the coming step.
    pub(super) fn learning_rate(&self) -> f64 {
        let RunConfig {
            schedule,
            learning_rate,
            warmup,
            ..
        } = self.config;
        schedule.learning_rate(
            learning_rate,
            warmup,
            self.state.step + 1,
            self.config.progress(self.state.step, self.epoch_steps()),
        )
    }
}
