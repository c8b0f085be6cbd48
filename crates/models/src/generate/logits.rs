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
    /// Lets the model read `tokens`, at least one per row; a common beginning is read once if the model can. Fails as [`of`](Self::of).
    pub(super) fn read<M: Autoregressive>(
        model: &M,
        state: &mut M::State,
        tokens: &[&[u32]],
    ) -> Result<Self, GenerateError> {
        let common = common_len(tokens);
        let is_read = common >= LEAST_COMMON
            && model.lengths(state).iter().all(|&length| length == 0)
            && model.read_in_common(state, &tokens[0][..common]);
        let logits = match is_read {
            true => {
                let rest = tokens.iter().map(|tokens| &tokens[common..]);
                model.advance(state, &rest.collect::<Vec<_>>())
            }
            false => model.advance(state, tokens),
        };
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

/// Fewer tokens are not worth a call of the model.
const LEAST_COMMON: usize = 16;

/// How many tokens all rows begin with, where each has another after them; 0 for one row.
fn common_len(tokens: &[&[u32]]) -> usize {
    let [first, rest @ ..] = tokens else { return 0 };
    let common = |other: &&[u32]| {
        let pairs = first.iter().zip(*other);
        let equal = pairs.take_while(|(token, other)| token == other).count();
        equal.min(other.len().saturating_sub(1))
    };
    let common = rest.iter().map(common).min().unwrap_or(0);
    common.min(first.len().saturating_sub(1))
}

/// The token of the largest logit of this row, the smaller one among equals. Fails if a logit is NaN or the largest is infinite, and panics if there is
/// none.
pub(super) fn largest(row: usize, logits: &[f32]) -> Result<usize, GenerateError> {
    assert!(!logits.is_empty(), "generate: there are no logits");
    let wrong = |token: usize| GenerateError::Logit {
        row,
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
pub(super) fn log_sum_exp(row: usize, logits: &[f32]) -> Result<f64, GenerateError> {
    let shift = f64::from(logits[largest(row, logits)?]);
    let sum: f64 = logits
        .iter()
        .map(|&logit| (f64::from(logit) - shift).exp())
        .sum();
    Ok(shift + sum.ln())
}
