//! The inputs of one attention call.

use crate::{InputError, Options, Problem, RelativeBuckets, options::exactly};

/// The tensors and options of one attention call.
///
/// # Shapes
/// - q `[batch, heads_q, len_q, dim_qk]`
/// - k `[batch, heads_kv, len_kv, dim_qk]`
/// - v `[batch, heads_kv, len_kv, dim_v]`
/// - alibi `[heads_q]`
/// - relative `[buckets, heads_q]`
/// - the options: see [`Options`]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Inputs<'a> {
    /// Queries, contiguous.
    pub q: &'a [f64],
    /// Keys, contiguous.
    pub k: &'a [f64],
    /// Values, contiguous.
    pub v: &'a [f64],
    /// Mask, bias, sinks, softcap, scale and dropout.
    pub options: Options<'a, f64>,
    /// ALiBi: one slope per query head; each score loses slope times the distance from position to key.
    pub alibi: Option<&'a [f64]>,
    /// T5's relative bias: a table with one number per bucket and query head, and how distances fall into the buckets.
    pub relative: Option<(&'a [f64], RelativeBuckets)>,
}

impl<'a> Inputs<'a> {
    /// Plain attention: everything visible, no bias, the default scale.
    #[must_use]
    pub fn new(q: &'a [f64], k: &'a [f64], v: &'a [f64]) -> Self {
        Self {
            q,
            k,
            v,
            options: Options::default(),
            alibi: None,
            relative: None,
        }
    }

    /// Checks the problem, and every tensor and option against it.
    ///
    /// # Errors
    /// A size, a length, a shape or an option is impossible; the message names it and its value.
    pub fn validate(&self, problem: &Problem) -> Result<(), InputError> {
        problem.validate()?;
        exactly("q", self.q.len(), problem.query_elements(), problem)?;
        exactly("k", self.k.len(), problem.key_elements(), problem)?;
        exactly("v", self.v.len(), problem.value_elements(), problem)?;
        self.options.validate(problem)?;
        if let Some(slopes) = self.alibi {
            exactly("alibi", slopes.len(), problem.heads_q, problem)?;
        }
        if let Some((table, buckets)) = self.relative {
            buckets.validate()?;
            let expected = buckets.buckets * problem.heads_q;
            exactly("relative", table.len(), expected, problem)?;
        }
        Ok(())
    }
}
