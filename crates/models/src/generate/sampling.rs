//! How the next token is chosen from its logits.

use std::cmp::Ordering;

use rand_chacha::{ChaCha8Rng, rand_core::RngCore};

use super::{GenerateError, logits::largest};

/// How the next token is chosen: always the most probable one, or one drawn at random, with improbable ones left out.
///
/// The filters apply in the order temperature, top-k, top-p, min-p, in whatever order they are called; see
/// [the module](super#how-a-token-is-chosen). The most probable token passes all of them, so they change nothing without a
/// [`temperature`](Self::temperature).
///
/// ```
/// use burn_attn_models::generate::Sampling;
///
/// let sampling = Sampling::temperature(0.8).top_k(50).top_p(0.95);
/// assert_eq!(Sampling::greedy().distribution(&[1.0, 3.0, 2.0]), [(1, 1.0)]);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Sampling {
    /// None is greedy.
    temperature: Option<f64>,
    top_k: Option<usize>,
    top_p: f64,
    min_p: f64,
}

impl Sampling {
    /// Always the most probable token, the smaller one among equals, also with [`top_k`](Self::top_k), [`top_p`](Self::top_p) or
    /// [`min_p`](Self::min_p). `do_sample=True` of Hugging Face's transformers, where 1 is the default temperature and 50 that of `top_k`, is
    /// `Sampling::temperature(1.0).top_k(50)`.
    pub fn greedy() -> Self {
        Self {
            temperature: None,
            top_k: None,
            top_p: 1.0,
            min_p: 0.0,
        }
    }

    /// Draws from `softmax(logits / temperature)`: 1 is the model's own distribution, a lower temperature favours probable tokens, a
    /// higher one evens the probabilities out.
    ///
    /// # Panics
    ///
    /// Unless `temperature` is positive and finite.
    pub fn temperature(temperature: f64) -> Self {
        assert!(
            temperature > 0.0 && temperature.is_finite(),
            "Sampling: temperature must be positive and finite, got {temperature}; always the most probable token is \
             Sampling::greedy()"
        );
        Self {
            temperature: Some(temperature),
            ..Self::greedy()
        }
    }

    /// Keeps exactly the `top_k` most probable tokens; among equals, the smaller ones. Without a [`temperature`](Self::temperature), it changes nothing.
    ///
    /// # Panics
    ///
    /// When `top_k` is 0.
    ///
    /// # Source
    ///
    /// "Hierarchical neural story generation" (arXiv:1805.04833), section 5.1.
    pub fn top_k(mut self, top_k: usize) -> Self {
        assert!(top_k >= 1, "Sampling: top_k must be at least 1, got 0");
        self.top_k = Some(top_k);
        self
    }

    /// Keeps the smallest set of most probable tokens whose probabilities add up to `top_p` or more: the nucleus.
    ///
    /// The probabilities are those after temperature and top-k. 1 keeps every token. Without a [`temperature`](Self::temperature), it changes nothing.
    ///
    /// # Panics
    ///
    /// Unless `top_p` is in (0, 1].
    ///
    /// # Source
    ///
    /// "The curious case of neural text degeneration" (arXiv:1904.09751), equation 2.
    pub fn top_p(mut self, top_p: f64) -> Self {
        assert!(
            top_p > 0.0 && top_p <= 1.0,
            "Sampling: top_p must be in (0, 1], got {top_p}"
        );
        self.top_p = top_p;
        self
    }

    /// Keeps the tokens at least `min_p` times as probable as the most probable one.
    ///
    /// The probabilities are those after the temperature. 0 keeps every token, 1 only those that tie with the most probable one. Without a
    /// [`temperature`](Self::temperature), it changes nothing.
    ///
    /// # Panics
    ///
    /// Unless `min_p` is in [0, 1].
    ///
    /// # Source
    ///
    /// "Turning up the heat: min-p sampling" (arXiv:2407.01082), section 3.
    pub fn min_p(mut self, min_p: f64) -> Self {
        assert!(
            (0.0..=1.0).contains(&min_p),
            "Sampling: min_p must be in [0, 1], got {min_p}"
        );
        self.min_p = min_p;
        self
    }

    /// The tokens that may be chosen and how probable each is, smaller tokens first.
    ///
    /// A token of probability zero is never among them.
    ///
    /// # Shapes
    ///
    /// - `logits`: one for each token of the vocabulary, not necessarily normalised
    ///
    /// # Panics
    ///
    /// When there are no logits, a logit is NaN, or the largest is not finite.
    ///
    /// # Cost
    ///
    /// O(vocabulary) if the filters keep a small part of the vocabulary; otherwise O(vocabulary · log vocabulary).
    pub fn distribution(&self, logits: &[f32]) -> Vec<(u32, f64)> {
        self.try_distribution(0, logits)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// [`distribution`](Self::distribution) with an error in place of its panics, but for logits of no tokens.
    fn try_distribution(
        &self,
        row: usize,
        logits: &[f32],
    ) -> Result<Vec<(u32, f64)>, GenerateError> {
        let best = largest(row, logits)?;
        let Some(temperature) = self.temperature else {
            return Ok(vec![(best as u32, 1.0)]);
        };
        // Relative to the largest logit: no temperature overflows, and the most probable token has weight 1.
        let shift = f64::from(logits[best]);
        let weight = |token: u32| {
            let logit = f64::from(logits[token as usize]);
            ((logit - shift) / temperature).exp()
        };
        let by_probability = |a: &u32, b: &u32| {
            let (of_a, of_b) = (logits[*a as usize], logits[*b as usize]);
            // No logit is NaN. Comparing them as they are, +0 and −0 tie.
            let descending = of_b.partial_cmp(&of_a).unwrap_or(Ordering::Equal);
            descending.then(a.cmp(b))
        };
        let mut kept: Vec<u32> = (0..logits.len() as u32).collect();
        if let Some(top_k) = self.top_k.filter(|&top_k| top_k < kept.len()) {
            kept.select_nth_unstable_by(top_k - 1, by_probability);
            kept.truncate(top_k);
        }
        if self.top_p < 1.0 {
            let mass = self.top_p * kept.iter().map(|&token| weight(token)).sum::<f64>();
            let count = nucleus(&mut kept, mass, weight, by_probability);
            kept.truncate(count);
        }
        // Draws go through the tokens in this order, so that a filter that leaves nothing out changes no draw.
        kept.sort_unstable();
        let weights = kept.into_iter().map(|token| (token, weight(token)));
        let mut kept: Vec<(u32, f64)> = weights
            .filter(|&(_, weight)| weight > 0.0 && weight >= self.min_p)
            .collect();
        let total: f64 = kept.iter().map(|(_, weight)| weight).sum();
        kept.iter_mut().for_each(|(_, weight)| *weight /= total);
        Ok(kept)
    }

    /// Chooses a token of this row with one number from `random`.
    pub(super) fn choose(
        &self,
        row: usize,
        logits: &[f32],
        random: &mut ChaCha8Rng,
    ) -> Result<u32, GenerateError> {
        let distribution = self.try_distribution(row, logits)?;
        // 53 bits are exact in f64, and below 1.
        let mut left = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        for &(token, probability) in &distribution {
            if left < probability {
                return Ok(token);
            }
            left -= probability;
        }
        // What rounding left over belongs to the last token.
        Ok(distribution[distribution.len() - 1].0)
    }
}

/// Brings the most probable tokens to the front, in order, until their weights reach `mass`, and returns their number.
fn nucleus(
    tokens: &mut [u32],
    mass: f64,
    weight: impl Fn(u32) -> f64,
    by_probability: impl Fn(&u32, &u32) -> Ordering,
) -> usize {
    let (mut sorted, mut sum) = (0, 0.0);
    while sorted < tokens.len() {
        // A nucleus is usually small. Sorting twice as many tokens each time, the whole vocabulary is sorted only if it has to be.
        let end = (2 * sorted).max(64).min(tokens.len());
        tokens[sorted..].select_nth_unstable_by(end - sorted - 1, &by_probability);
        tokens[sorted..end].sort_unstable_by(&by_probability);
        for (at, &token) in tokens.iter().enumerate().take(end).skip(sorted) {
            sum += weight(token);
            if sum >= mass {
                return at + 1;
            }
        }
        sorted = end;
    }
    tokens.len()
}
