//! Biases that depend only on how far a key is from its query: ALiBi and T5's relative bias.

use alloc::vec::Vec;

use crate::{CausalAlignment, Mask, Problem, math};
use serde::{Deserialize, Serialize};
use thiserror::Error;

#[cfg(test)]
mod tests;

/// T5's buckets of distances: near keys one by one, far ones together, on a logarithmic scale.
///
/// A learned table `[buckets, heads_q]` has one bias per bucket and query head. In each direction, half of the buckets
/// hold one distance each. The others share the distances up to `max_distance`, and the last also takes all beyond it.
///
/// # Source
/// Raffel et al., *Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer* (2020), section
/// 2.1. PyTorch: `T5Attention._relative_position_bucket` of Hugging Face's `transformers`, bucket for bucket.
///
/// # Example
/// ```
/// use burn_attn_kernels_cpu::RelativeBuckets;
///
/// let encoder = RelativeBuckets { buckets: 32, max_distance: 128, bidirectional: true };
/// encoder.validate().unwrap();
/// assert_eq!([-1000, -20, -3, 0, 3, 20].map(|position| encoder.bucket(position)), [15, 10, 3, 0, 19, 26]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RelativeBuckets {
    /// Number of buckets, which is the number of rows of the table: 32 in T5.
    pub buckets: usize,
    /// The distance from which all keys share the last bucket, in tokens: 128 in T5.
    pub max_distance: usize,
    /// Whether half of the buckets are for keys after the query. Otherwise these keys share the bucket of distance 0.
    ///
    /// T5's encoder is bidirectional, its causal decoder is not.
    pub bidirectional: bool,
}

/// Why [`RelativeBuckets`] cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RelativeBucketsError {
    /// A direction has fewer than two buckets.
    #[error(
        "relative buckets need at least {at_least} buckets (2 for each direction), but have {buckets}"
    )]
    Buckets {
        /// The number of buckets that was given.
        buckets: usize,
        /// The smallest legal number.
        at_least: usize,
    },
    /// The logarithmic buckets have no distances to share.
    #[error(
        "the max_distance of relative buckets must be more than {exact}, but is {max_distance}"
    )]
    MaxDistance {
        /// The distance that was given.
        max_distance: usize,
        /// Number of distances that have a bucket each.
        exact: usize,
    },
}

impl RelativeBuckets {
    /// Checks that both halves of the scale have buckets.
    ///
    /// # Errors
    /// A direction has fewer than two buckets, or `max_distance` is among the distances that have a bucket each.
    pub fn validate(&self) -> Result<(), RelativeBucketsError> {
        let at_least = if self.bidirectional { 4 } else { 2 };
        if self.buckets < at_least {
            return Err(RelativeBucketsError::Buckets {
                buckets: self.buckets,
                at_least,
            });
        }
        let exact = self.of_one_direction() / 2;
        if self.max_distance <= exact {
            return Err(RelativeBucketsError::MaxDistance {
                max_distance: self.max_distance,
                exact,
            });
        }
        Ok(())
    }

    /// The bucket of a key that is `relative_position = key - position(query)` tokens after its query.
    ///
    /// With `n` the buckets of one direction, `e = n / 2` and `d` the distance:
    ///
    /// ```text
    /// d                                                              d < e
    /// min(e + floor(ln(d / e) / ln(max_distance / e) * (n - e)), n - 1)   else
    /// ```
    ///
    /// For keys after the query, `n` is added if the buckets are bidirectional; otherwise `d = 0`.
    ///
    /// The result is below [`buckets`](Self::buckets) if [`validate`](Self::validate) passes.
    #[must_use]
    pub fn bucket(&self, relative_position: isize) -> usize {
        let after = relative_position > 0;
        let buckets = self.of_one_direction();
        let (first, distance) = match (self.bidirectional, after) {
            (true, true) => (buckets, relative_position.unsigned_abs()),
            (false, true) => (0, 0),
            (_, false) => (0, relative_position.unsigned_abs()),
        };
        let exact = buckets / 2;
        if distance < exact {
            return first + distance;
        }
        // In f32, as T5 does it, since at the edge of a bucket the last bit decides. The logarithms are rounded from
        // f64, because that of f32 differs between platforms.
        let ratio = distance as f32 / exact as f32;
        let share = math::ln(f64::from(ratio)) as f32
            / math::ln(self.max_distance as f64 / exact as f64) as f32
            * (buckets - exact) as f32;
        first + exact.saturating_add(share as usize).min(buckets - 1)
    }

    fn of_one_direction(&self) -> usize {
        if self.bidirectional {
            self.buckets / 2
        } else {
            self.buckets
        }
    }
}

/// ALiBi's slopes, one per query head, steepest first: `2^(-8 · 1 / n), 2^(-8 · 2 / n), …` for `n` heads.
///
/// If `n` is not a power of two, the first heads get the slopes of the next smaller power of two, and the others get every second
/// slope of twice that power.
///
/// # Shapes
/// `[heads]`
///
/// # Source
/// Press et al., *Train Short, Test Long* (2022), section 3, and `get_slopes` of its code.
///
/// # Example
/// ```
/// use burn_attn_kernels_cpu::alibi_slopes;
///
/// assert_eq!(alibi_slopes(4), [0.25, 0.0625, 0.015625, 0.00390625]);
/// assert_eq!(alibi_slopes(6), [0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125]);
/// ```
#[must_use]
pub fn alibi_slopes(heads: usize) -> Vec<f64> {
    let Some(log) = heads.checked_ilog2() else {
        return Vec::new();
    };
    let power = 1_usize << log;
    let slope = |numerator: usize, of: usize| math::exp2(-8.0 * numerator as f64 / of as f64);
    let first = (1..=power).map(|k| slope(k, power));
    let between = (0..heads - power).map(|k| slope(2 * k + 1, 2 * power));
    first.chain(between).collect()
}

/// The axis of a distance bias: one entry for every distance that occurs between a query and a key.
///
/// A distance bias is an operand `t` of shape `[heads_q, len_q + len_kv - 1]`; score `(i, j)` of head `h` gets
/// `t[h][i - j + len_kv - 1]`. With [`query_offsets`](Mask::query_offsets) the distances differ between batch items: `t` has
/// `2 * (len_q + len_kv) - 1` entries per head, and score `(b, i, j)` gets
/// `t[h][query_offsets[b] + i - j + len_q + len_kv - 1]`. ALiBi and the relative bias are two instances:
///
/// ```text
/// ALiBi      t[h][r] = -slopes[h] * |relative_position(r)|
/// relative   t[h][r] = table[bucket(relative_position(r))][h]
/// ```
///
/// Both are empty when `len_q` or `len_kv` is 0.
///
/// # Cost
/// O(`heads_q` · (`len_q` + `len_kv`)) memory, where a dense bias has O(`heads_q` · `len_q` · `len_kv`).
///
/// # Example
/// ```
/// use burn_attn_kernels_cpu::{CausalAlignment, DistanceAxis};
///
/// let axis = DistanceAxis { len_q: 2, len_kv: 3, alignment: Some(CausalAlignment::BottomRight) };
/// assert_eq!(axis.relative_positions().collect::<Vec<_>>(), [1, 0, -1, -2]);
/// assert_eq!(axis.index(2, 2), 1); // a query that stands on the last key
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DistanceAxis {
    /// Number of queries, in tokens.
    pub len_q: usize,
    /// Number of keys, in tokens.
    pub len_kv: usize,
    /// Where the queries stand among the keys: the alignment of the causal mask, bottom-right if there is none; `None` with
    /// [`query_offsets`](Mask::query_offsets).
    pub alignment: Option<CausalAlignment>,
}

impl DistanceAxis {
    /// The axis of a problem. Only the causal alignment of the mask matters, and whether the mask has query offsets.
    #[must_use]
    pub fn new(problem: &Problem, mask: &Mask<'_>) -> Self {
        Self {
            len_q: problem.len_q,
            len_kv: problem.len_kv,
            alignment: mask
                .query_offsets
                .is_none()
                .then(|| mask.by_position.causal.unwrap_or_default()),
        }
    }

    /// Number of entries per head: `len_q + len_kv - 1`, or `2 * (len_q + len_kv) - 1` with query offsets; 0 if there is no pair.
    #[must_use]
    pub fn len(&self) -> usize {
        if self.len_q == 0 || self.len_kv == 0 {
            return 0;
        }
        // Saturating: a length that wraps around would fit any buffer.
        let distances = self.len_q.saturating_add(self.len_kv - 1);
        match self.alignment {
            Some(_) => distances,
            None => distances.saturating_mul(2).saturating_add(1),
        }
    }

    /// The entry of distance 0, if the axis is not empty.
    fn zero(&self) -> isize {
        match self.alignment {
            Some(alignment) => self.len_kv as isize - 1 - alignment.offset(self.len_q, self.len_kv),
            None => (self.len_q + self.len_kv) as isize - 1,
        }
    }

    /// Whether there is no pair of a query and a key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The entry that serves one score; `position` is [`Mask::position`] of the query.
    ///
    /// Along the keys of one query the entry decreases by one, and along the queries of one key it increases by one, so a kernel
    /// reads a contiguous run.
    #[must_use]
    #[inline]
    pub fn index(&self, position: isize, key: usize) -> usize {
        (position - key as isize + self.zero()) as usize
    }

    /// `key - position(query)` of the pairs that an entry serves, in tokens: negative for keys before their query.
    ///
    /// `position` is [`Mask::position`].
    #[must_use]
    pub fn relative_position(&self, index: usize) -> isize {
        self.zero() - index as isize
    }

    /// [`relative_position`](Self::relative_position) of every entry, in order.
    pub fn relative_positions(self) -> impl ExactSizeIterator<Item = isize> {
        (0..self.len()).map(move |index| self.relative_position(index))
    }
}
