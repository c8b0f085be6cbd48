//! The options of attention, and why a call is refused.

use thiserror::Error;

use crate::{
    AttentionDropout, Broadcast, BroadcastError, DropoutError, Mask, MaskError, Problem,
    ProblemError, RelativeBucketsError,
};

/// The options that the kernels and the oracle share; `R` is the precision of the computation. The default is plain attention.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Options<'a, R> {
    /// Which keys each query may see.
    pub mask: Mask<'a>,
    /// `[batch or 1, heads_q or 1, len_q or 1, len_kv or 1]`: added to the scores after the softcap; −∞ hides.
    pub bias: Option<Broadcast<'a, R>>,
    /// `[heads_q]`: one score per query head that joins the denominator of the softmax and has no value; −∞ has no effect.
    pub sinks: Option<&'a [R]>,
    /// Limits the scores to `(-softcap, softcap)` by a tanh.
    pub softcap: Option<f64>,
    /// Factor on the scores, `1 / sqrt(dim_qk)` if absent.
    pub scale: Option<f64>,
    /// Dropout on the weights.
    pub dropout: Option<AttentionDropout>,
}

impl<R> Options<'_, R> {
    /// Checks every option against the problem.
    ///
    /// # Errors
    /// An option is impossible; the message names it and its value.
    pub fn validate(&self, problem: &Problem) -> Result<(), InputError> {
        self.mask.validate(problem)?;
        if let Some(bias) = &self.bias {
            bias.validate(problem)?;
        }
        if let Some(sinks) = self.sinks {
            exactly("sinks", sinks.len(), problem.heads_q, problem)?;
        }
        if let Some(softcap) = self.softcap
            && !(softcap.is_finite() && softcap > 0.0)
        {
            return Err(InputError::Softcap { softcap });
        }
        if let Some(scale) = self.scale
            && !scale.is_finite()
        {
            return Err(InputError::Scale { scale });
        }
        if let Some(dropout) = &self.dropout {
            dropout.validate()?;
        }
        Ok(())
    }

    /// The factor on the scores.
    pub(crate) fn scale(&self, problem: &Problem) -> f64 {
        self.scale.unwrap_or_else(|| problem.default_scale())
    }
}

/// Why a call cannot be run.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum InputError {
    /// The sizes are impossible.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// The mask does not fit the sizes.
    #[error(transparent)]
    Mask(#[from] MaskError),
    /// The bias does not fit the sizes.
    #[error("the bias does not fit: {0}")]
    Bias(#[from] BroadcastError),
    /// A tensor that a function has captured does not fit the sizes.
    #[error("captured tensor {index} of the {function} function does not fit: {error}")]
    Captured {
        /// `score` or `visible`.
        function: &'static str,
        /// Which of its tensors, from 0.
        index: usize,
        /// Why it does not fit.
        error: BroadcastError,
    },
    /// A score function has captured a number of every pair, whose gradients would take memory that is not linear in the lengths.
    #[error(
        "captured tensor {index} of the score function has shape {shape:?}, but must not vary along both queries and keys"
    )]
    CapturedPairs {
        /// Which of its tensors, from 0.
        index: usize,
        /// `[batch or 1, heads_q or 1, len_q, len_kv]`
        shape: [usize; 4],
    },
    /// The relative buckets are impossible.
    #[error(transparent)]
    RelativeBuckets(#[from] RelativeBucketsError),
    /// The dropout is impossible.
    #[error(transparent)]
    Dropout(#[from] DropoutError),
    /// The length of a buffer does not fit its shape and strides.
    #[error("{name} needs {expected} elements for {problem:?}, but has {actual}")]
    Length {
        /// The buffer.
        name: &'static str,
        /// The number of elements that the shape and the strides span.
        expected: usize,
        /// The length of the buffer.
        actual: usize,
        /// The sizes that were asked for.
        problem: Problem,
    },
    /// Rows that are written would overlap.
    #[error("the rows of the {name} overlap with strides {strides:?} for {problem:?}")]
    Overlap {
        /// The tensor.
        name: &'static str,
        /// From one batch item, head and row to the next, in elements.
        strides: [usize; 3],
        /// The sizes that were asked for.
        problem: Problem,
    },
    /// The softcap is not positive and finite.
    #[error("the softcap must be positive and finite, but is {softcap}")]
    Softcap {
        /// The softcap that was given.
        softcap: f64,
    },
    /// The scale is NaN or infinite.
    #[error("the scale must be finite, but is {scale}")]
    Scale {
        /// The scale that was given.
        scale: f64,
    },
}

/// Refuses a buffer whose length is not that of its shape.
pub(crate) fn exactly(
    name: &'static str,
    actual: usize,
    expected: usize,
    problem: &Problem,
) -> Result<(), InputError> {
    if actual == expected {
        return Ok(());
    }
    Err(InputError::Length {
        name,
        expected,
        actual,
        problem: *problem,
    })
}

/// Refuses a buffer that is too short for its shape and strides.
pub(crate) fn at_least(
    name: &'static str,
    actual: usize,
    expected: usize,
    problem: &Problem,
) -> Result<(), InputError> {
    exactly(name, actual.min(expected), expected, problem)
}
