//! How rotary positions reach beyond the length that a model was trained on.

use core::f64::consts::TAU;

use serde::{Deserialize, Serialize};

/// How the angles of [`Rotary`](super::Rotary) are stretched, so that a model reads more tokens than it was trained on.
///
/// With `θ[i] = base^(−2i / rotary_dim)` the angle per token of pair `i` as trained:
///
/// | | angle per token | cosine and sine |
/// | --- | --- | --- |
/// | `None` | `θ[i]` | |
/// | `Linear` | `θ[i] / factor` | |
/// | `Ntk` | `θ[i]`, of the base `base · factor^(rotary_dim / (rotary_dim − 2))` | |
/// | `Yarn` | `(1 − r[i]) · θ[i] + r[i] · θ[i] / factor` | times `0.1 · ln(factor) + 1` |
///
/// YaRN's ramp `r[i]` goes from 0 (pairs that turn `beta_fast` times and more within `original_max_len`: what they say is
/// local, so they stay) to 1 (`beta_slow` times and less: they would reach angles that were never trained).
///
/// # Source
///
/// `Linear`: Chen et al., "Extending context window of large language models via positional interpolation"
/// (arXiv:2306.15595), equation 4. `Ntk`: the "NTK-aware" change of base, as written in arXiv:2309.00071, section 3.1.
/// `Yarn`: Peng et al., "YaRN: efficient context window extension of large language models" (arXiv:2309.00071), sections
/// 3.2 and 3.4; the ends of the ramp are rounded outwards to whole pairs, as in the authors' code and Hugging Face's
/// `transformers` (`rope_type` "linear", "yarn"), whose numbers these are.
///
/// ```
/// use burn_attn::positions::{RotaryConfig, RotaryScaling};
///
/// // From 4096 tokens to 32768.
/// let rotary = RotaryConfig::new().with_max_len(32_768).with_scaling(RotaryScaling::yarn(8.0, 4096));
/// assert!((rotary.scaling.attention_factor() - 1.2079).abs() < 1e-4);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub enum RotaryScaling {
    /// The angles as trained.
    #[default]
    None,
    /// Position interpolation: positions are divided by the factor.
    Linear {
        /// How many times longer the sequences become.
        factor: f64,
    },
    /// A larger base: fast pairs keep their angle, the slowest is divided by the factor.
    Ntk {
        /// How many times longer the sequences become.
        factor: f64,
    },
    /// Fast pairs keep their angle, slow ones are interpolated, and attention becomes a little sharper.
    Yarn {
        /// How many times longer the sequences become.
        factor: f64,
        /// Length that the model was trained on (tokens).
        original_max_len: usize,
        /// Pairs that turn at least this often within `original_max_len` stay: 32 in the paper.
        beta_fast: f64,
        /// Pairs that turn at most this often within `original_max_len` are interpolated: 1 in the paper.
        beta_slow: f64,
    },
}

impl RotaryScaling {
    /// [`Yarn`](Self::Yarn) with the paper's `beta_fast` 32 and `beta_slow` 1.
    pub fn yarn(factor: f64, original_max_len: usize) -> Self {
        Self::Yarn {
            factor,
            original_max_len,
            beta_fast: 32.0,
            beta_slow: 1.0,
        }
    }

    /// What cosine and sine are multiplied by: `0.1 · ln(factor) + 1` for YaRN, else 1.
    ///
    /// Queries and keys both carry it, so the scores are multiplied by its square: the inverse of the paper's temperature.
    pub fn attention_factor(&self) -> f64 {
        match self {
            Self::Yarn { factor, .. } => 0.1 * factor.ln() + 1.0,
            _ => 1.0,
        }
    }

    /// What is wrong with the values, if anything.
    pub(super) fn check(&self, rotary_dim: usize) -> Result<(), String> {
        let factor = match *self {
            Self::None => return Ok(()),
            Self::Linear { factor } | Self::Ntk { factor } | Self::Yarn { factor, .. } => factor,
        };
        if !(factor.is_finite() && factor >= 1.0) {
            return Err(format!(
                "the factor of scaling must be finite and at least 1, got {factor}"
            ));
        }
        match *self {
            Self::Ntk { .. } if rotary_dim <= 2 => Err(format!(
                "scaling Ntk needs a rotary_dim of at least 4, got {rotary_dim}"
            )),
            Self::Yarn {
                original_max_len: 0,
                ..
            } => Err("the original_max_len of scaling must be at least 1, got 0".into()),
            Self::Yarn {
                beta_fast,
                beta_slow,
                ..
            } if !(0.0 < beta_slow && beta_slow < beta_fast && beta_fast.is_finite()) => {
                Err(format!(
                    "scaling Yarn needs 0 < beta_slow < beta_fast, got {beta_slow} and {beta_fast}"
                ))
            }
            _ => Ok(()),
        }
    }

    /// The angle per token of every pair (radians).
    pub(super) fn frequencies(&self, base: f64, rotary_dim: usize) -> Vec<f64> {
        let dim = rotary_dim as f64;
        let trained =
            |base: f64| (0..rotary_dim / 2).map(move |pair| base.powf(-2.0 * pair as f64 / dim));
        match *self {
            Self::None => trained(base).collect(),
            Self::Linear { factor } => trained(base).map(|angle| angle / factor).collect(),
            Self::Ntk { factor } => trained(base * factor.powf(dim / (dim - 2.0))).collect(),
            Self::Yarn {
                factor,
                original_max_len,
                beta_fast,
                beta_slow,
            } => {
                // Solved for the pair, as a real number, that turns this often within the original length.
                let pair_of = |turns: f64| {
                    dim * (original_max_len as f64 / (turns * TAU)).ln() / (2.0 * base.ln())
                };
                let first = pair_of(beta_fast).floor().max(0.0);
                // Never before the first: lengths of a few tokens would turn the ramp around.
                let last = pair_of(beta_slow).ceil().min(dim - 1.0).max(first);
                // Where both ends are one pair, the ramp is a step.
                let width = (last - first).max(0.001);
                let ramp = |pair: usize| ((pair as f64 - first) / width).clamp(0.0, 1.0);
                trained(base)
                    .enumerate()
                    .map(|(pair, angle)| (1.0 - ramp(pair)) * angle + ramp(pair) * angle / factor)
                    .collect()
            }
        }
    }
}
