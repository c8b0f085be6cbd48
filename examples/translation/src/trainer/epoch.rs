//! The end of an epoch: the losses, the curve, a checkpoint and a sample.

use burn::module::Module;
use burn::train::InferenceStep;
use burn_attn_models::seq2seq::Seq2Seq;
use burn_attn_models::train::{BatchSize, MovingAverage};
use example_common::text::printable;

use super::Trainer;
use crate::batches::{self, Sample};
use crate::curve;
use crate::error::Error;
use crate::progress::{Progress, duration};
use crate::sentence::LONGEST;
use crate::state::{Accuracy, CurvePoint};
use crate::translator;

impl Trainer {
    /// Ends an epoch, or the part of it that there were steps for: measures the losses, reports them and saves a checkpoint.
    pub(super) fn end_epoch(&mut self, progress: &Progress) -> Result<(), Error> {
        self.read_losses()?;
        let (validation, validation_accuracy) = self.validate();
        let point = CurvePoint {
            epoch: self.state.epoch + 1,
            step: self.state.step,
            train: self.train_loss(),
            validation: self.finite("validation loss", validation)?,
            train_accuracy: self.state.accuracy,
            validation_accuracy,
        };
        let label = self.epoch_label();
        let sample = self.sample()?.unwrap_or_default();
        if self.state.step_in_epoch == self.epoch_steps {
            self.state.epoch += 1;
            self.state.step_in_epoch = 0;
            (self.state.loss_sum, self.state.loss_tokens) = (0.0, 0);
            self.state.accuracy = Accuracy::default();
        }
        self.state.finished = self.is_over();
        self.state.curve.push(point.clone());
        self.save()?;
        curve::draw(&self.state.curve, &self.out.join(curve::FILE))?;
        let percent = |accuracy: Accuracy| match accuracy.fraction() {
            Some(part) => format!(" ({:.1} % of tokens)", 100.0 * part),
            None => String::new(),
        };
        progress.line(&format!(
            "{label}: loss {:.3}{}, validation {:.3}{}{}, {:.0} tokens/s{}{sample}",
            point.train,
            percent(point.train_accuracy),
            point.validation,
            percent(point.validation_accuracy),
            if self.state.is_best() {
                ", the best"
            } else {
                ""
            },
            self.state.tokens_per_second(),
            self.seconds_left()
                .map_or_else(String::new, |left| format!(", {} left", duration(left))),
        ));
        Ok(())
    }

    /// Adds the losses that are still on the device to the sum, in the order of the steps.
    pub(super) fn read_losses(&mut self) -> Result<(), Error> {
        for (loss, tokens) in self.unread.drain(..) {
            self.state.loss_sum += f64::from(loss.into_scalar::<f32>()) * tokens as f64;
        }
        self.finite("loss", self.state.loss_sum).map(|_| ())
    }

    /// A loss, if it is finite.
    fn finite(&self, name: &'static str, loss: f64) -> Result<f64, Error> {
        if loss.is_finite() {
            return Ok(loss);
        }
        Err(Error::Diverged {
            name,
            loss,
            step: self.state.step,
            learning_rate: self.config.learning_rate,
        })
    }

    /// The mean training loss of the epoch under way.
    fn train_loss(&self) -> f64 {
        self.state.loss_sum / self.state.loss_tokens.max(1) as f64
    }

    /// The loss on the validation part, without smoothing and dropout (nats per token), and how many tokens are right.
    fn validate(&self) -> (f64, Accuracy) {
        let (model, device) = (self.trained(), self.device.clone().inner());
        let (mut sum, mut accuracy) = (0.0, Accuracy::default());
        let size = BatchSize::Samples(self.config.batch);
        for indices in batches::plan(&self.validation, size, 0, 0) {
            let samples: Vec<&Sample> = indices
                .iter()
                .map(|&index| &self.validation[index])
                .collect();
            let batch = batches::batch(&samples, &device);
            let count = batch.targets.count;
            let output = InferenceStep::step(&model, batch);
            accuracy.add(batches::right(&output), count);
            sum += f64::from(output.loss.into_scalar::<f32>()) * count as f64;
        }
        (sum / accuracy.tokens as f64, accuracy)
    }

    /// A sample translation from the validation set, a different one each epoch: a line of the report.
    fn sample(&self) -> Result<Option<String>, Error> {
        // A prime, so that neighbours in the corpus are far apart.
        let pair = &self.to_show[self.state.epoch * 7919 % self.to_show.len()];
        let tokens = self.vocabulary.encode(&pair.source)?;
        let model = self.trained();
        if !self.config.fits(tokens.len()) {
            return Ok(None);
        }
        let device = self.device.clone().inner();
        let translation = translator::search(&model, &[&tokens], 1, &device)?.remove(0);
        let translation = self.vocabulary.decode(&translation)?;
        let [source, translation] =
            [&pair.source, &translation].map(|text| printable(text, LONGEST));
        Ok(Some(format!("\n  {source} → {translation}")))
    }

    /// The model that a checkpoint of now would translate with.
    fn trained(&self) -> Seq2Seq {
        let average = self.average.as_ref().map(MovingAverage::model);
        average.unwrap_or(self.model()).valid()
    }
}
