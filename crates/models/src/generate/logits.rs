//! The model's prediction of the next token of every row, read once per step.

use std::slice::ChunksExact;

use burn::tensor::Tensor;

use super::{Autoregressive, GenerateError};

/// The logits of the next token of every row, on the host.
pub(super) struct NextLogits {
    numbers: Vec<f32>,
    vocab_size: usize,
}

impl NextLogits {
    /// Lets the model read `tokens`, at least one per row. Fails as [`of`](Self::of).
    pub(super) fn read<M: Autoregressive>(
        model: &M,
        state: &mut M::State,
        tokens: &[&[u32]],
    ) -> Result<Self, GenerateError> {
        let logits = model.advance(state, tokens);
        Self::of(model, logits, tokens.len())
    }

    /// Logits of `rows` rows. Fails if the model is in training, the logits have another shape, or the backend cannot hand them over.
    pub(super) fn of<M: Autoregressive>(
        model: &M,
        logits: Tensor<2>,
        rows: usize,
    ) -> Result<Self, GenerateError> {
        // Only the logits tell what kind of device the model is on.
        if logits.device().is_autodiff() {
            return Err(GenerateError::Autodiff);
        }
        let (found, vocab_size) = (logits.dims(), model.vocab_size());
        if found != [rows, vocab_size] {
            return Err(GenerateError::Shape {
                found,
                rows,
                vocab_size,
            });
        }
        let numbers = logits
            .try_into_vec_as()
            .map_err(|error| GenerateError::Unreadable(error.to_string()))?;
        Ok(Self {
            numbers,
            vocab_size,
        })
    }

    pub(super) fn rows(&self) -> ChunksExact<'_, f32> {
        self.numbers.chunks_exact(self.vocab_size)
    }
}

/// The token of the largest logit, the smaller one among equals. Fails if a logit is NaN or the largest is infinite, and panics if there is none.
pub(super) fn largest(logits: &[f32]) -> Result<usize, GenerateError> {
    assert!(!logits.is_empty(), "generate: there are no logits");
    let wrong = |token: usize| GenerateError::Logit {
        token: token as u32,
        logit: logits[token],
    };
    let mut best = 0;
    for (token, &logit) in logits.iter().enumerate() {
        if logit.is_nan() {
            return Err(wrong(token));
        }
        if logit > logits[best] {
            best = token;
        }
    }
    match logits[best].is_finite() {
        true => Ok(best),
        false => Err(wrong(best)),
    }
}

/// What to subtract from a logit to get a log-probability: `ln Σ exp(logits)`. Fails as [`largest`].
pub(super) fn log_sum_exp(logits: &[f32]) -> Result<f64, GenerateError> {
    let shift = f64::from(logits[largest(logits)?]);
    let sum: f64 = logits
        .iter()
        .map(|&logit| (f64::from(logit) - shift).exp())
        .sum();
    Ok(shift + sum.ln())
}
