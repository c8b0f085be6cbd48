//! What goes into one attention call.

use crate::{
    AttentionDropout, Broadcast, BroadcastError, DropoutError, Mask, MaskError, Problem,
    ProblemError, RelativeBuckets, RelativeBucketsError,
};
use thiserror::Error;

/// The tensors and options of one attention call.
///
/// # Shapes
/// - q `[batch, heads_q, len_q, dim_qk]`
/// - k `[batch, heads_kv, len_kv, dim_qk]`
/// - v `[batch, heads_kv, len_kv, dim_v]`
/// - bias `[batch or 1, heads_q or 1, len_q or 1, len_kv or 1]`
/// - alibi `[heads_q]`
/// - relative `[buckets, heads_q]`
/// - sinks `[heads_q]`
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Inputs<'a> {
    /// Queries, contiguous.
    pub q: &'a [f64],
    /// Keys, contiguous.
    pub k: &'a [f64],
    /// Values, contiguous.
    pub v: &'a [f64],
    /// Which keys each query may see.
    pub mask: Mask<'a>,
    /// Added to the scores after the softcap; −∞ hides.
    pub bias: Option<Broadcast<'a, f64>>,
    /// ALiBi: one slope per query head; each score loses slope times the distance from position to key.
    pub alibi: Option<&'a [f64]>,
    /// T5's relative bias: a table with one number per bucket and query head, and how distances fall into the buckets.
    pub relative: Option<(&'a [f64], RelativeBuckets)>,
    /// One score per query head that joins the denominator of the softmax and has no value; −∞ has no effect.
    pub sinks: Option<&'a [f64]>,
    /// Limits the scores to `(-softcap, softcap)` by a tanh.
    pub softcap: Option<f64>,
    /// Factor on the scores, `1 / sqrt(dim_qk)` if absent.
    pub scale: Option<f64>,
    /// Dropout on the weights.
    pub dropout: Option<AttentionDropout>,
}

/// Why [`Inputs`] cannot be run.
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
    /// The relative buckets are impossible.
    #[error(transparent)]
    RelativeBuckets(#[from] RelativeBucketsError),
    /// The dropout is impossible.
    #[error(transparent)]
    Dropout(#[from] DropoutError),
    /// A buffer does not have the length of its shape.
    #[error("{name} needs {expected} elements for {problem:?}, but has {actual}")]
    Length {
        /// The buffer.
        name: &'static str,
        /// The product of its shape.
        expected: usize,
        /// The length of the buffer.
        actual: usize,
        /// The sizes that were asked for.
        problem: Problem,
    },
    /// The softcap is not a positive number.
    #[error("the softcap must be positive and finite, but is {softcap}")]
    Softcap {
        /// The softcap that was given.
        softcap: f64,
    },
    /// The scale is not a number.
    #[error("the scale must be finite, but is {scale}")]
    Scale {
        /// The scale that was given.
        scale: f64,
    },
}

impl<'a> Inputs<'a> {
    /// Plain attention: everything visible, no bias, the default scale.
    #[must_use]
    pub fn new(q: &'a [f64], k: &'a [f64], v: &'a [f64]) -> Self {
        Self {
            q,
            k,
            v,
            mask: Mask::default(),
            bias: None,
            alibi: None,
            relative: None,
            sinks: None,
            softcap: None,
            scale: None,
            dropout: None,
        }
    }

    /// Checks the problem, and every tensor and option against it.
    ///
    /// # Errors
    /// A size, a length, a shape or an option is impossible; the message names it and its value.
    pub fn validate(&self, problem: &Problem) -> Result<(), InputError> {
        problem.validate()?;
        check_length("q", self.q.len(), problem.query_elements(), problem)?;
        check_length("k", self.k.len(), problem.key_elements(), problem)?;
        check_length("v", self.v.len(), problem.value_elements(), problem)?;
        self.mask.validate(problem)?;
        if let Some(bias) = &self.bias {
            bias.validate(problem)?;
        }
        if let Some(slopes) = self.alibi {
            check_length("alibi", slopes.len(), problem.heads_q, problem)?;
        }
        if let Some((table, buckets)) = self.relative {
            buckets.validate()?;
            let expected = buckets.buckets * problem.heads_q;
            check_length("relative", table.len(), expected, problem)?;
        }
        if let Some(sinks) = self.sinks {
            check_length("sinks", sinks.len(), problem.heads_q, problem)?;
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
}

/// Compares the length of a buffer with that of its shape.
pub(super) fn check_length(
    name: &'static str,
    actual: usize,
    expected: usize,
    problem: &Problem,
) -> Result<(), InputError> {
    if actual == expected {
        Ok(())
    } else {
        Err(InputError::Length {
            name,
            expected,
            actual,
            problem: *problem,
        })
    }
}
