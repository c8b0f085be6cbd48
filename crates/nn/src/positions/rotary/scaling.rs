//! Extending rotary positions beyond the length that a model was trained on.

use core::f64::consts::TAU;

use burn_attn_derive::Config;
use serde::{Deserialize, Serialize};

/// How the angles of [`Rotary`](super::Rotary) are stretched, so that a model can read more tokens than it was trained on.
///
/// With `θ[i] = base^(−2i / rotary_dim)` the angle per token of pair `i` as trained:
///
/// | | angle per token | cosine and sine |
/// | --- | --- | --- |
/// | `None` | `θ[i]` | |
/// | `Linear` | `θ[i] / factor` | |
/// | `Ntk` | `θ[i]` with the base `base · factor^(rotary_dim / (rotary_dim − 2))` | |
/// | `Yarn` | `(1 − r[i]) · θ[i] + r[i] · θ[i] / factor` | times `0.1 · ln(factor) + 1` |
/// | `Llama3` | `s[i] · θ[i] + (1 − s[i]) · θ[i] / factor` | |
/// | `LongRope` | `θ[i] / factors[i]` | times `attention_factor` |
///
/// YaRN's ramp `r[i]` goes from 0 (pairs that turn at least `beta_fast` times within `original_max_len`: they carry local
/// information and are kept) to 1 (at most `beta_slow` times: they would reach angles that were never trained). Llama's `s[i]`
/// goes from 1 (at least `high_freq_factor` turns) to 0 (at most `low_freq_factor` turns), linearly in the turns.
///
/// # Source
///
/// `Linear`: Chen et al., "Extending context window of large language models via positional interpolation"
/// (arXiv:2306.15595), equation 4. `Ntk`: the "NTK-aware" change of base, as written in arXiv:2309.00071, section 3.1.
/// `Yarn`: Peng et al., "YaRN: efficient context window extension of large language models" (arXiv:2309.00071), sections
/// 3.2 and 3.4. `Llama3`: the code of Llama 3.1 (arXiv:2407.21783). `LongRope`: Ding et al., "LongRoPE: extending LLM context
/// window beyond 2 million tokens" (arXiv:2402.13753). The numbers are those of Hugging Face's `transformers` (`rope_type`
/// "linear", "yarn", "llama3", "longrope").
///
/// ```
/// use burn_attn::positions::{RotaryConfig, RotaryScaling};
///
/// // From 4096 tokens to 32768.
/// let rotary = RotaryConfig::new().with_max_len(32_768).with_scaling(RotaryScaling::yarn(8.0, 4096));
/// assert!((rotary.scaling.attention_factor() - 1.2079).abs() < 1e-4);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// A larger base: the fastest pair keeps its angle, that of the slowest is divided by the factor.
    Ntk {
        /// How many times longer the sequences become.
        factor: f64,
    },
    /// Fast pairs keep their angle, slow ones are interpolated, and attention becomes a little sharper.
    Yarn(YarnScaling),
    /// Fast pairs keep their angle, slow ones are interpolated: Llama 3.1 and later.
    Llama3 {
        /// How many times longer the sequences become.
        factor: f64,
        /// Pairs that turn at most this often within `original_max_len` are interpolated: 1 in Llama 3.1.
        low_freq_factor: f64,
        /// Pairs that turn at least this often within `original_max_len` are kept: 4 in Llama 3.1.
        high_freq_factor: f64,
        /// Length that the model was trained on (tokens).
        original_max_len: usize,
    },
    /// Every pair is interpolated by a different factor, found by a search: Phi-3.
    ///
    /// Published models have two lists of factors: one for texts up to the length they were trained on, one for longer texts. A
    /// module has one list: choose it for your longest text.
    LongRope {
        /// Divisor of each pair's angle: `[rotary_dim / 2]`; with [`Equal`](super::RotaryAxes::Equal) axes, for the pairs of one axis.
        factors: Vec<f64>,
        /// Factor on cosine and sine. Phi-3's is `√(1 + ln(factor) / ln(original_max_len))` for sequences that become
        /// `factor` times longer.
        attention_factor: f64,
    },
}

/// Parameters of [`RotaryScaling::Yarn`].
///
/// ```
/// use burn_attn::positions::{RotaryScaling, YarnScaling};
///
/// let gpt_oss = RotaryScaling::Yarn(YarnScaling::new(32.0, 4096).with_truncate(false));
/// let deepseek_v2 = RotaryScaling::Yarn(YarnScaling::new(40.0, 4096).with_mscale(0.707, 0.707));
/// assert_eq!(deepseek_v2.attention_factor(), 1.0);
/// ```
#[derive(Config, Debug, Copy, PartialEq)]
pub struct YarnScaling {
    /// How many times longer the sequences become.
    pub factor: f64,
    /// Length that the model was trained on (tokens).
    pub original_max_len: usize,
    /// Pairs that turn at least this often within `original_max_len` are kept.
    #[config(default = 32.0)]
    pub beta_fast: f64,
    /// Pairs that turn at most this often within `original_max_len` are interpolated.
    #[config(default = 1.0)]
    pub beta_slow: f64,
    /// Factor on cosine and sine. Default: `0.1 · ln(factor) + 1`.
    pub attention_factor: Option<f64>,
    /// Whether the ends of the ramp are rounded outwards to whole pairs, as the authors' code does and gpt-oss does not.
    #[config(default = true, missing = true)]
    pub truncate: bool,
}

impl YarnScaling {
    /// Sets [`attention_factor`](Self::attention_factor) to
    /// `(0.1 · mscale · ln(factor) + 1) / (0.1 · mscale_all_dim · ln(factor) + 1)`, the meaning of these names in DeepSeek's
    /// files.
    pub fn with_mscale(self, mscale: f64, mscale_all_dim: f64) -> Self {
        let of = |mscale| magnitude(self.factor, mscale);
        self.with_attention_factor(of(mscale) / of(mscale_all_dim))
    }
}

/// YaRN's factor on cosine and sine.
fn magnitude(factor: f64, mscale: f64) -> f64 {
    0.1 * mscale * factor.ln() + 1.0
}

impl RotaryScaling {
    /// [`Yarn`](Self::Yarn) with the paper's `beta_fast` 32 and `beta_slow` 1.
    pub fn yarn(factor: f64, original_max_len: usize) -> Self {
        Self::Yarn(YarnScaling::new(factor, original_max_len))
    }

    /// The factor on cosine and sine: 1 except for YaRN and LongRoPE.
    ///
    /// Queries and keys both have it, so the scores are multiplied by its square: the inverse of the temperature in YaRN's
    /// paper.
    pub fn attention_factor(&self) -> f64 {
        match self {
            Self::Yarn(yarn) => yarn
                .attention_factor
                .unwrap_or_else(|| magnitude(yarn.factor, 1.0)),
            Self::LongRope {
                attention_factor, ..
            } => *attention_factor,
            _ => 1.0,
        }
    }

    /// What is wrong with the values, if anything.
    pub(super) fn check(&self, rotary_dim: usize) -> Result<(), String> {
        let (factor, original_max_len) = match *self {
            Self::None => return Ok(()),
            // LongRoPE has a factor per pair.
            Self::LongRope { .. } => (1.0, None),
            Self::Linear { factor } | Self::Ntk { factor } => (factor, None),
            Self::Yarn(ref yarn) => (yarn.factor, Some(yarn.original_max_len)),
            Self::Llama3 {
                factor,
                original_max_len,
                ..
            } => (factor, Some(original_max_len)),
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
            _ if original_max_len == Some(0) => {
                Err("the original_max_len of scaling must be at least 1, got 0".into())
            }
            Self::Yarn(YarnScaling {
                beta_fast,
                beta_slow,
                ..
            }) if !(0.0 < beta_slow && beta_slow < beta_fast && beta_fast.is_finite()) => {
                Err(format!(
                    "scaling Yarn needs 0 < beta_slow < beta_fast, got {beta_slow} and {beta_fast}"
                ))
            }
            Self::Llama3 {
                low_freq_factor: low,
                high_freq_factor: high,
                ..
            } if !(0.0 < low && low < high && high.is_finite()) => Err(format!(
                "scaling Llama3 needs 0 < low_freq_factor < high_freq_factor, got {low} and {high}"
            )),
            Self::LongRope { ref factors, .. } => check_factors(factors, rotary_dim),
            _ => Ok(()),
        }?;
        let attention_factor = self.attention_factor();
        if !(attention_factor.is_finite() && attention_factor > 0.0) {
            return Err(format!(
                "the attention_factor of scaling must be finite and positive, got {attention_factor}"
            ));
        }
        Ok(())
    }

    /// The angle per token of every pair (radians).
    pub(super) fn frequencies(&self, base: f64, rotary_dim: usize) -> Vec<f64> {
        let dim = rotary_dim as f64;
        let base = match self {
            Self::Ntk { factor } => base * factor.powf(dim / (dim - 2.0)),
            _ => base,
        };
        let of_pair = |pair: usize| {
            let trained = base.powf(-2.0 * pair as f64 / dim);
            match *self {
                Self::None | Self::Ntk { .. } => trained,
                Self::Linear { factor } => trained / factor,
                Self::Yarn(yarn) => {
                    let ramp = yarn.ramp(base, dim, pair);
                    (1.0 - ramp) * trained + ramp * trained / yarn.factor
                }
                Self::Llama3 {
                    factor,
                    low_freq_factor,
                    high_freq_factor,
                    original_max_len,
                } => {
                    let turns = original_max_len as f64 * trained / TAU;
                    let kept = (turns - low_freq_factor) / (high_freq_factor - low_freq_factor);
                    let kept = kept.clamp(0.0, 1.0);
                    kept * trained + (1.0 - kept) * trained / factor
                }
                Self::LongRope { ref factors, .. } => trained / factors[pair],
            }
        };
        (0..rotary_dim / 2).map(of_pair).collect()
    }
}

impl YarnScaling {
    /// How much a pair is interpolated, from 0 to 1.
    fn ramp(&self, base: f64, dim: f64, pair: usize) -> f64 {
        // Solved for the pair, as a real number, that turns this often within the original length.
        let pair_of = |turns: f64| {
            dim * (self.original_max_len as f64 / (turns * TAU)).ln() / (2.0 * base.ln())
        };
        let (first, last) = (pair_of(self.beta_fast), pair_of(self.beta_slow));
        let (first, last) = match self.truncate {
            true => (first.floor(), last.ceil()),
            false => (first, last),
        };
        let first = first.max(0.0);
        // Never before the first: lengths of a few tokens would reverse the ramp.
        let last = last.min(dim - 1.0).max(first);
        // If both ends are the same pair, the ramp is a step.
        let width = if last > first { last - first } else { 0.001 };
        ((pair as f64 - first) / width).clamp(0.0, 1.0)
    }
}

fn check_factors(factors: &[f64], rotary_dim: usize) -> Result<(), String> {
    let pairs = rotary_dim / 2;
    if factors.len() != pairs {
        return Err(format!(
            "scaling LongRope has {} factors for the {pairs} pairs of rotary_dim {rotary_dim}",
            factors.len()
        ));
    }
    let wrong = |factor: &&f64| !(factor.is_finite() && **factor > 0.0);
    match factors.iter().find(wrong) {
        Some(factor) => Err(format!(
            "the factors of scaling LongRope must be finite and positive, got {factor}"
        )),
        None => Ok(()),
    }
}
