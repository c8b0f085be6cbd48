//! The state of a training: everything needed to resume it, besides the model and the moments of its optimizers.

use serde::{Deserialize, Serialize};

/// How far a training is, and its loss curve.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Complete epochs.
    pub epoch: usize,
    /// Complete steps of the epoch under way.
    pub step_in_epoch: usize,
    /// Complete steps of all epochs.
    pub step: usize,
    /// Sum of the training loss over the tokens of the epoch under way.
    pub loss_sum: f64,
    /// Tokens predicted in the epoch under way.
    pub loss_tokens: usize,
    /// Tokens predicted right in the epoch under way, counted in every tenth step.
    pub accuracy: Accuracy,
    /// Seconds of training, without evaluation.
    pub seconds: f64,
    /// Tokens read and predicted, without padding.
    pub tokens: usize,
    /// Models in the moving average.
    #[serde(default)]
    pub averaged: usize,
    /// Whether the run has come to its end.
    pub finished: bool,
    /// The curve so far.
    pub curve: Vec<CurvePoint>,
}

/// One epoch of the loss curve, or the part of one after which a run ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// The epoch, counted from 1.
    pub epoch: usize,
    /// The step after which it was measured.
    pub step: usize,
    /// Mean training loss (nats per token, smoothed).
    pub train: f64,
    /// Validation loss (nats per token, not smoothed).
    pub validation: f64,
    /// Training tokens predicted right, before the step that learnt from them.
    pub train_accuracy: Accuracy,
    /// Validation tokens predicted right.
    pub validation_accuracy: Accuracy,
}

/// How many tokens were predicted right, each from the right tokens before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accuracy {
    /// Tokens predicted right.
    pub right: usize,
    /// Tokens predicted.
    pub tokens: usize,
}

impl Accuracy {
    /// Adds other tokens.
    pub fn add(&mut self, right: usize, tokens: usize) {
        self.right += right;
        self.tokens += tokens;
    }

    /// The fraction predicted right; `None` without tokens, as in a short last epoch none of whose steps was counted.
    pub fn fraction(self) -> Option<f64> {
        (self.tokens > 0).then(|| self.right as f64 / self.tokens as f64)
    }
}

impl State {
    /// The name of the checkpoint: `epoch-0007`, or `epoch-0007-step-000100` within the next epoch.
    pub fn name(&self) -> String {
        if self.step_in_epoch == 0 {
            format!("epoch-{:04}", self.epoch)
        } else {
            format!("epoch-{:04}-step-{:06}", self.epoch, self.step_in_epoch)
        }
    }

    /// Tokens read and predicted per second of training.
    pub fn tokens_per_second(&self) -> f64 {
        self.tokens as f64 / self.seconds.max(1e-9)
    }

    /// Whether the validation loss was measured after the last step, and is the lowest so far.
    pub fn is_best(&self) -> bool {
        let is_lowest = |(last, earlier): (&CurvePoint, &[CurvePoint])| {
            let mut earlier = earlier.iter();
            last.step == self.step && earlier.all(|point| point.validation > last.validation)
        };
        self.curve.split_last().is_some_and(is_lowest)
    }
}
