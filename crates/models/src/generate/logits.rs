//! The model's prediction of the next token of every row, read once per step.

use std::slice::ChunksExact;

use super::Autoregressive;

/// The logits of the next token of every row, on the host.
pub(super) struct NextLogits {
    numbers: Vec<f32>,
    vocab_size: usize,
}

impl NextLogits {
    /// Lets the model read `tokens`, at least one per row.
    ///
    /// # Panics
    ///
    /// When the model is in training, or its logits do not have one row for each of `tokens`.
    pub(super) fn read<M: Autoregressive>(
        model: &M,
        state: &mut M::State,
        tokens: &[&[u32]],
    ) -> Self {
        let logits = model.advance(state, tokens);
        // Only the logits tell what kind of device the model is on.
        assert!(
            !logits.device().is_autodiff(),
            "generate: the model is on an autodiff device, where dropout acts and every step is kept for gradients; generate with \
             model.valid()"
        );
        let (rows, vocab_size) = (tokens.len(), model.vocab_size());
        assert!(
            logits.dims() == [rows, vocab_size],
            "generate: the model gave logits {:?} for {rows} rows and a vocabulary of {vocab_size} tokens",
            logits.dims()
        );
        let numbers = logits
            .try_into_vec_as()
            .unwrap_or_else(|error| panic!("generate: the logits cannot be read: {error}"));
        Self {
            numbers,
            vocab_size,
        }
    }

    pub(super) fn rows(&self) -> ChunksExact<'_, f32> {
        self.numbers.chunks_exact(self.vocab_size)
    }
}

/// The token of the largest logit, the smaller one among equals.
///
/// # Panics
///
/// When there is none, a logit is NaN, or the largest is infinite.
pub(super) fn largest(logits: &[f32]) -> usize {
    assert!(!logits.is_empty(), "generate: there are no logits");
    let mut best = 0;
    for (token, &logit) in logits.iter().enumerate() {
        assert!(
            !logit.is_nan(),
            "generate: the logit of token {token} is NaN"
        );
        if logit > logits[best] {
            best = token;
        }
    }
    assert!(
        logits[best].is_finite(),
        "generate: the largest logit must be finite, got {} (token {best})",
        logits[best]
    );
    best
}

/// What to subtract from a logit to get a log-probability: `ln Σ exp(logits)`.
///
/// # Panics
///
/// As [`largest`].
pub(super) fn log_sum_exp(logits: &[f32]) -> f64 {
    let shift = f64::from(logits[largest(logits)]);
    let sum: f64 = logits
        .iter()
        .map(|&logit| (f64::from(logit) - shift).exp())
        .sum();
    shift + sum.ln()
}
