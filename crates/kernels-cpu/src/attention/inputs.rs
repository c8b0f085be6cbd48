//! What goes into one call of the kernels.

use thiserror::Error;

use crate::{
    AttentionDropout, Broadcast, BroadcastError, DistanceAxis, DropoutError, Mask, MaskError,
    Problem, ProblemError,
    attention::kernel::{bias::Biases, scores::Scoring, softcap::Softcap, visibility::Visible},
    extent::elements,
    simd::real::Real,
    view::{element::Element, rows::Rows, rows_mut::RowsMut},
};

/// The tensors and options of one call of the kernels.
///
/// # Shapes
/// - q `[batch, heads_q, len_q, dim_qk]`
/// - k `[batch, heads_kv, len_kv, dim_qk]`
/// - v `[batch, heads_kv, len_kv, dim_v]`
/// - bias `[batch or 1, heads_q or 1, len_q or 1, len_kv or 1]`
/// - distance bias `[heads_q, len_q + len_kv − 1]`, with query offsets `[heads_q, 2 · (len_q + len_kv) − 1]`
/// - sinks `[heads_q]`
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a, T: Element> {
    /// The seven sizes.
    pub problem: Problem,
    /// Queries.
    pub q: Rows<'a, T>,
    /// Keys.
    pub k: Rows<'a, T>,
    /// Values.
    pub v: Rows<'a, T>,
    /// Which keys each query may see.
    pub mask: Mask<'a>,
    /// Added to the scores after the softcap; −∞ hides.
    pub bias: Option<Broadcast<'a, T::Real>>,
    /// Added to the scores: entry `i − j + len_kv − 1` of a head to the score of query `i` and key `j`; with query offsets entry
    /// `query_offsets[b] + i − j + len_q + len_kv − 1` to that of batch item `b`.
    pub distance_bias: Option<&'a [T::Real]>,
    /// One score per query head that joins the denominator of the softmax and has no value.
    pub sinks: Option<&'a [T::Real]>,
    /// Limits the scores to `(-softcap, softcap)` by a tanh.
    pub softcap: Option<f64>,
    /// Factor on the scores, `1 / sqrt(dim_qk)` if absent.
    pub scale: Option<f64>,
    /// Dropout on the weights.
    pub dropout: Option<AttentionDropout>,
}

/// Why [`Inputs`] cannot be run.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum KernelError {
    /// The sizes are impossible.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// The mask does not fit the sizes.
    #[error(transparent)]
    Mask(#[from] MaskError),
    /// The bias does not fit the sizes.
    #[error("the bias does not fit: {0}")]
    Bias(#[from] BroadcastError),
    /// The dropout is impossible.
    #[error(transparent)]
    Dropout(#[from] DropoutError),
    /// A buffer is too short for its shape and strides.
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
    #[error("the rows of the {name} overlap for {problem:?}")]
    Overlap {
        /// The tensor.
        name: &'static str,
        /// The sizes that were asked for.
        problem: Problem,
    },
    /// The softcap is not a positive number, or the scale is not a number.
    #[error("{name} must be finite and the softcap positive, but {name} is {value}")]
    Number {
        /// Which number.
        name: &'static str,
        /// Its value.
        value: f64,
    },
}

impl<'a, T: Element> Inputs<'a, T> {
    /// Plain attention over contiguous tensors: everything visible, no bias, the default scale.
    #[must_use]
    pub fn new(problem: Problem, q: &'a [T], k: &'a [T], v: &'a [T]) -> Self {
        let Problem {
            heads_q,
            heads_kv,
            len_q,
            len_kv,
            dim_qk,
            dim_v,
            ..
        } = problem;
        Self {
            problem,
            q: Rows::contiguous(q, heads_q, len_q, dim_qk),
            k: Rows::contiguous(k, heads_kv, len_kv, dim_qk),
            v: Rows::contiguous(v, heads_kv, len_kv, dim_v),
            mask: Mask::default(),
            bias: None,
            distance_bias: None,
            sinks: None,
            softcap: None,
            scale: None,
            dropout: None,
        }
    }

    /// The options that act on scores, as kernels take them.
    pub(crate) fn scoring(&self) -> Scoring<'a, T::Real> {
        Scoring {
            visible: Visible {
                problem: self.problem,
                mask: self.mask,
            },
            biases: Biases {
                dense: self.bias,
                distance: self.distance_bias,
            },
            softcap: self.softcap.map(Softcap::new),
            dropout: self.dropout,
        }
    }

    /// The factor on the scores.
    pub(crate) fn scale(&self) -> f64 {
        self.scale.unwrap_or_else(|| self.problem.default_scale())
    }

    /// Checks every tensor and option against the problem.
    ///
    /// # Errors
    /// A size, a length, a shape or an option is impossible; the message names it and its value.
    pub fn validate(&self) -> Result<(), KernelError> {
        let problem = &self.problem;
        problem.validate()?;
        let Problem {
            batch,
            heads_q,
            heads_kv,
            len_q,
            len_kv,
            dim_qk,
            dim_v,
        } = *problem;
        for (name, rows, heads, len, dim) in [
            ("q", &self.q, heads_q, len_q, dim_qk),
            ("k", &self.k, heads_kv, len_kv, dim_qk),
            ("v", &self.v, heads_kv, len_kv, dim_v),
        ] {
            at_least(
                name,
                rows.available(),
                rows.extent(batch, heads, len, dim),
                problem,
            )?;
        }
        self.mask.validate(problem)?;
        if let Some(bias) = &self.bias {
            bias.validate(problem)?;
        }
        if let Some(distance) = self.distance_bias {
            exactly(
                "distance_bias",
                distance.len(),
                elements([problem.heads_q, self.distances()]),
                problem,
            )?;
        }
        if let Some(sinks) = self.sinks {
            exactly("sinks", sinks.len(), heads_q, problem)?;
        }
        if let Some(softcap) = self.softcap
            && !(softcap.is_finite() && softcap > 0.0)
        {
            return Err(KernelError::Number {
                name: "softcap",
                value: softcap,
            });
        }
        if let Some(scale) = self.scale
            && !scale.is_finite()
        {
            return Err(KernelError::Number {
                name: "scale",
                value: scale,
            });
        }
        if let Some(dropout) = &self.dropout {
            dropout.validate()?;
        }
        Ok(())
    }

    /// Number of entries of a distance bias for each head, 0 if there is no pair.
    pub(crate) fn distances(&self) -> usize {
        DistanceAxis::new(&self.problem, &self.mask).len()
    }

    /// The sink of a head, as f64; minus infinity if there is none.
    pub(crate) fn sink(&self, head: usize) -> f64 {
        self.sinks
            .map_or(f64::NEG_INFINITY, |sinks| sinks[head].to_f64())
    }
}

pub(crate) fn exactly(
    name: &'static str,
    actual: usize,
    expected: usize,
    problem: &Problem,
) -> Result<(), KernelError> {
    if actual == expected {
        Ok(())
    } else {
        too_short(name, actual, expected, problem)
    }
}

pub(crate) fn at_least(
    name: &'static str,
    actual: usize,
    expected: usize,
    problem: &Problem,
) -> Result<(), KernelError> {
    if actual >= expected {
        Ok(())
    } else {
        too_short(name, actual, expected, problem)
    }
}

/// Checks that rows can be written: that they are in their slice and do not overlap.
pub(crate) fn writable<T>(
    name: &'static str,
    rows: &RowsMut<'_, T>,
    sizes: [usize; 3],
    dim: usize,
    problem: &Problem,
) -> Result<(), KernelError> {
    match rows.extent(sizes, dim) {
        Some(expected) => at_least(name, rows.available(), expected, problem),
        None => Err(KernelError::Overlap {
            name,
            problem: *problem,
        }),
    }
}

fn too_short(
    name: &'static str,
    actual: usize,
    expected: usize,
    problem: &Problem,
) -> Result<(), KernelError> {
    Err(KernelError::Length {
        name,
        expected,
        actual,
        problem: *problem,
    })
}
