//! The sizes of one attention call.

use crate::{extent::elements, math};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The seven sizes that determine every shape of one attention call.
///
/// # Shapes
/// - query `[batch, heads_q, len_q, dim_qk]`
/// - key `[batch, heads_kv, len_kv, dim_qk]`
/// - value `[batch, heads_kv, len_kv, dim_v]`
/// - output `[batch, heads_q, len_q, dim_v]`
///
/// # Example
/// ```
/// use burn_attn_kernels_cpu::Problem;
///
/// let problem =
///     Problem { batch: 2, heads_q: 8, heads_kv: 2, len_q: 5, len_kv: 7, dim_qk: 16, dim_v: 11 };
/// assert!(problem.validate().is_ok());
/// assert_eq!(problem.group_size(), 4);
/// assert_eq!(problem.kv_head(5), 1);
/// assert_eq!(problem.default_scale(), 0.25);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Problem {
    /// Number of independent batch items. May be zero.
    pub batch: usize,
    /// Number of query heads, a multiple of `heads_kv`.
    pub heads_q: usize,
    /// Number of key/value heads; 1 is multi-query attention.
    pub heads_kv: usize,
    /// Number of queries, in tokens. May be zero.
    pub len_q: usize,
    /// Number of keys and values, in tokens. May be zero: then every row is hidden.
    pub len_kv: usize,
    /// Size of one query or key vector.
    pub dim_qk: usize,
    /// Size of one value or output vector.
    pub dim_v: usize,
}

/// Why a [`Problem`] cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProblemError {
    /// A size that must be positive is zero.
    #[error("{name} must be at least 1, but is 0")]
    Zero {
        /// The field of [`Problem`].
        name: &'static str,
    },
    /// The query heads cannot be shared out evenly among the key/value heads.
    #[error("heads_kv must divide heads_q, but heads_q is {heads_q} and heads_kv is {heads_kv}")]
    UnevenGroups {
        /// Number of query heads.
        heads_q: usize,
        /// Number of key/value heads.
        heads_kv: usize,
    },
    /// A tensor would have more elements than memory can hold.
    #[error("the {name} of {problem:?} has more elements than memory can hold")]
    TooLarge {
        /// The tensor.
        name: &'static str,
        /// The sizes that were given.
        problem: Problem,
    },
}

impl Problem {
    /// Checks that the sizes can be run; zero `batch`, `len_q` and `len_kv` are legal.
    ///
    /// # Errors
    /// A head count or a dim is zero, `heads_kv` does not divide `heads_q`, or a tensor has more than `isize::MAX` elements.
    pub fn validate(&self) -> Result<(), ProblemError> {
        for (name, size) in [
            ("heads_q", self.heads_q),
            ("heads_kv", self.heads_kv),
            ("dim_qk", self.dim_qk),
            ("dim_v", self.dim_v),
        ] {
            if size == 0 {
                return Err(ProblemError::Zero { name });
            }
        }
        if !self.heads_q.is_multiple_of(self.heads_kv) {
            return Err(ProblemError::UnevenGroups {
                heads_q: self.heads_q,
                heads_kv: self.heads_kv,
            });
        }
        for (name, elements) in [
            ("query", self.query_elements()),
            ("key", self.key_elements()),
            ("value", self.value_elements()),
            ("output", self.output_elements()),
        ] {
            if elements > isize::MAX.unsigned_abs() {
                let problem = *self;
                return Err(ProblemError::TooLarge { name, problem });
            }
        }
        Ok(())
    }

    /// Number of query heads that share one key/value head: `heads_q / heads_kv`.
    ///
    /// # Panics
    /// `heads_kv` is zero.
    #[must_use]
    pub fn group_size(&self) -> usize {
        self.heads_q / self.heads_kv
    }

    /// The key/value head that query head `head_q` reads: `head_q / group_size`.
    ///
    /// # Panics
    /// The problem is not valid (a head count is zero).
    ///
    /// # Source
    /// Ainslie et al., *GQA* (2023). PyTorch: `enable_gqa=True`.
    #[must_use]
    pub fn kv_head(&self, head_q: usize) -> usize {
        head_q / self.group_size()
    }

    /// The factor on the scores when the caller names none: `1 / sqrt(dim_qk)`.
    #[must_use]
    pub fn default_scale(&self) -> f64 {
        1.0 / math::sqrt(self.dim_qk as f64)
    }

    /// Batch items, heads and rows of query and output.
    pub(crate) fn query_sizes(&self) -> [usize; 3] {
        [self.batch, self.heads_q, self.len_q]
    }

    /// Batch items, heads and rows of key and value.
    pub(crate) fn key_sizes(&self) -> [usize; 3] {
        [self.batch, self.heads_kv, self.len_kv]
    }

    /// Floating-point operations of the forward pass, if everything is visible.
    pub(crate) fn operations(&self) -> f64 {
        // Not `score_elements`: kernels hold no score matrix, so its size need not fit into a `usize`.
        let scores = self.query_rows() as f64 * self.len_kv as f64;
        2.0 * scores * (self.dim_qk as f64 + self.dim_v as f64)
    }

    /// Number of elements of the query: `batch · heads_q · len_q · dim_qk`.
    #[must_use]
    pub fn query_elements(&self) -> usize {
        elements([self.query_rows(), self.dim_qk])
    }

    /// Number of elements of the key: `batch · heads_kv · len_kv · dim_qk`.
    #[must_use]
    pub fn key_elements(&self) -> usize {
        elements([self.key_rows(), self.dim_qk])
    }

    /// Number of elements of the value: `batch · heads_kv · len_kv · dim_v`.
    #[must_use]
    pub fn value_elements(&self) -> usize {
        elements([self.key_rows(), self.dim_v])
    }

    /// Number of elements of the output: `batch · heads_q · len_q · dim_v`.
    #[must_use]
    pub fn output_elements(&self) -> usize {
        elements([self.query_rows(), self.dim_v])
    }

    /// Number of elements of the score matrix, which kernels never hold: `batch · heads_q · len_q · len_kv`.
    #[must_use]
    pub fn score_elements(&self) -> usize {
        elements([self.query_rows(), self.len_kv])
    }

    /// Number of query rows, which is the number of elements of the logsumexp: `batch · heads_q · len_q`.
    #[must_use]
    pub fn query_rows(&self) -> usize {
        elements(self.query_sizes())
    }

    /// Number of key rows and of value rows: `batch · heads_kv · len_kv`.
    #[must_use]
    pub fn key_rows(&self) -> usize {
        elements(self.key_sizes())
    }

    /// Flat index of a query row: multiply by `dim_qk`, `dim_v` or `len_kv` for query, output or scores.
    #[must_use]
    pub fn query_row(&self, batch_item: usize, head_q: usize, query: usize) -> usize {
        (batch_item * self.heads_q + head_q) * self.len_q + query
    }

    /// Flat index of a key or value row: multiply by `dim_qk` or `dim_v`.
    #[must_use]
    pub fn key_row(&self, batch_item: usize, head_kv: usize, key: usize) -> usize {
        (batch_item * self.heads_kv + head_kv) * self.len_kv + key
    }
}

#[cfg(test)]
mod tests;
