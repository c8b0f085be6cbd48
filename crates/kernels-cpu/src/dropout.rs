//! Which attention weights are dropped, as a pure function of their indices.

use crate::math;
use serde::{Deserialize, Serialize};
use thiserror::Error;

#[cfg(test)]
mod tests;

/// Counter-based dropout of attention weights: nothing is stored, and the backward pass recomputes what was dropped.
///
/// A weight is kept with probability `1 - probability`, and then scaled by `1 / (1 - probability)`. The decision
/// depends on (seed, batch item, query head, query, key) and nothing else: not on tiles, threads or devices.
///
/// # The function
/// All arithmetic is on `u32`, wrapping, so that a GPU without 64-bit integers computes the same bits. With
/// [`mix`](Self::mix) a bijection of `u32`:
///
/// ```text
/// once per row    (a, b) = (0x243f6a88, 0x85a308d3)
///                 for word in [seed low, seed high, batch item, head, query]:
///                     a = mix(a ^ word);  b = mix(b + a)
/// once per key    x = key ^ a
///                 x ^= x >> 17;  x *= 0xed5ad4bb;  x += b
///                 x ^= x >> 11;  x *= 0xac4c1b51
///                 x ^= x >> 15;  x *= 0x31848bab
///                 x ^= x >> 14
/// kept            (x >> 1) >= round(probability * 2^31)
/// ```
///
/// The last comparison is between 31-bit numbers, so that tensors of signed integers can do it too. Every step of the row
/// is a bijection of the 64 bits `(a, b)`, so no part of the seed is lost; `b` enters in the middle of the key's hash, so
/// rows with the same `a` do not drop the same keys. Indices count modulo 2³².
///
/// # Cost
/// About 120 integer operations per row, 15 per key.
///
/// # Source
/// Srivastava et al., *Dropout* (2014); the counters follow Salmon et al., *Parallel Random Numbers: As Easy as 1, 2, 3*
/// (2011); the bijection is C. Wellons' `triple32` (hash-prospector, public domain), keyed here with `b`.
/// PyTorch: `dropout_p` of `scaled_dot_product_attention` (the same distribution, other bits).
///
/// # Example
/// ```
/// use burn_attn_kernels_cpu::AttentionDropout;
///
/// let dropout = AttentionDropout { probability: 0.25, seed: 42 };
/// dropout.validate().unwrap();
/// let row = dropout.row(0, 3, 17);
/// let kept = (0..10_000).filter(|&key| row.keep(key)).count();
/// assert!((7_300..7_700).contains(&kept));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttentionDropout {
    /// Probability that a weight is dropped, in `[0, 1)`.
    pub probability: f64,
    /// Selects the pattern; draw a new seed for every training step.
    pub seed: u64,
}

/// Why an [`AttentionDropout`] cannot be used.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum DropoutError {
    /// The probability is outside `[0, 1)` or not a number.
    #[error("the dropout probability must be at least 0 and less than 1, but is {probability}")]
    Probability {
        /// The probability that was given.
        probability: f64,
    },
}

/// The state of one row of scores: hashed once, then asked for each key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttentionDropoutRow {
    /// The row's 64-bit state `(a, b)`.
    pub state: [u32; 2],
    /// Weights whose 31 random bits are below this are dropped.
    pub threshold: u32,
}

impl AttentionDropout {
    /// Checks the probability.
    ///
    /// # Errors
    /// The probability is not in `[0, 1)`.
    pub fn validate(&self) -> Result<(), DropoutError> {
        // A range test, not two negated comparisons, so that NaN is refused.
        if (0.0..1.0).contains(&self.probability) {
            Ok(())
        } else {
            Err(DropoutError::Probability {
                probability: self.probability,
            })
        }
    }

    /// The factor on kept weights, `1 / (1 - probability)`, which leaves their expected value unchanged.
    #[must_use]
    pub fn kept_scale(&self) -> f64 {
        1.0 / (1.0 - self.probability)
    }

    /// The probability as a 31-bit number, `round(probability · 2³¹)`: below it, a weight is dropped.
    #[must_use]
    pub fn threshold(&self) -> u32 {
        const STEPS: f64 = (1_u32 << 31) as f64;
        // Capped, because rounding a probability just below 1 could leave 31 bits.
        math::round(self.probability * STEPS).min(STEPS - 1.0) as u32
    }

    /// Hashes everything but the key, once per row of scores. `head` is the query head.
    #[must_use]
    pub fn row(&self, batch_item: usize, head: usize, query: usize) -> AttentionDropoutRow {
        let words = [batch_item, head, query].map(|word| word as u32);
        AttentionDropoutRow {
            state: words.into_iter().fold(self.seeded(), Self::next),
            threshold: self.threshold(),
        }
    }

    /// The state of every row before its indices are hashed.
    #[must_use]
    pub fn seeded(&self) -> [u32; 2] {
        // The first digits of pi: any fixed, unremarkable start will do.
        let start = [0x243f_6a88, 0x85a3_08d3];
        let words = [self.seed as u32, (self.seed >> 32) as u32];
        words.into_iter().fold(start, Self::next)
    }

    fn next([a, b]: [u32; 2], word: u32) -> [u32; 2] {
        let a = Self::mix(a ^ word);
        [a, Self::mix(b.wrapping_add(a))]
    }

    /// Whether one weight is kept; [`row`](Self::row) is the faster way to ask for many.
    #[must_use]
    pub fn keep(&self, batch_item: usize, head: usize, query: usize, key: usize) -> bool {
        self.row(batch_item, head, query).keep(key)
    }

    /// The bijection of `u32` that hashes a row: `triple32`.
    #[must_use]
    pub fn mix(word: u32) -> u32 {
        AttentionDropoutRow {
            state: [0, 0],
            threshold: 0,
        }
        .bits(word)
    }
}

impl AttentionDropoutRow {
    /// Whether this key's weight is kept.
    #[must_use]
    #[inline]
    pub fn keep(&self, key: usize) -> bool {
        (self.bits(key as u32) >> 1) >= self.threshold
    }

    /// Writes `factor` for the keys `0 .. factors.len()` that are kept, and 0 for the others.
    pub fn fill(&self, factors: &mut [f32], factor: f32) {
        for (key, slot) in factors.iter_mut().enumerate() {
            *slot = if self.keep(key) { factor } else { 0.0 };
        }
    }

    /// The 32 random bits of this key.
    #[must_use]
    #[inline]
    pub fn bits(&self, key: u32) -> u32 {
        let mut x = key ^ self.state[0];
        x ^= x >> 17;
        x = x.wrapping_mul(0xed5a_d4bb).wrapping_add(self.state[1]);
        x ^= x >> 11;
        x = x.wrapping_mul(0xac4c_1b51);
        x ^= x >> 15;
        x = x.wrapping_mul(0x3184_8bab);
        x ^ (x >> 14)
    }
}
