//! Configuration of rotary positions: the pairs and their angles.

use burn::tensor::Device;
use burn_attn_derive::Config;
use burn_attn_ops::RotaryLayout;
use serde::{Deserialize, Serialize};

use super::{Rotary, RotaryScaling, rotation::Angles};
use crate::{
    error::{ConfigError, expect_valid},
    positions::fixed_table,
};

/// Configuration of [`Rotary`].
///
/// The width of a head belongs to the attention module, so it is not a field but an argument of the methods.
#[derive(Config, Debug, PartialEq)]
pub struct RotaryConfig {
    /// Number of positions (tokens).
    #[config(default = 4096)]
    pub max_len: usize,
    /// The wavelengths go from 2π towards `base` · 2π (tokens).
    #[config(default = 10_000.0)]
    pub base: f64,
    /// How many numbers of a head are rotated: the first ones. The others are left as they are. Default: all.
    pub rotary_dim: Option<usize>,
    /// Which numbers form a pair.
    #[config(default = "RotaryLayout::HalfSplit")]
    pub layout: RotaryLayout,
    /// How the angles are stretched for sequences longer than those trained on.
    #[config(default = "RotaryScaling::None")]
    pub scaling: RotaryScaling,
    /// Which pairs turn with which axis of [`Positions::PerAxis`](crate::positions::Positions::PerAxis).
    #[config(default = "RotaryAxes::One", missing = "RotaryAxes::One")]
    pub axes: RotaryAxes,
}

/// Which pairs of a [`Rotary`] turn with which axis of a position. A token whose position is one number has it on every axis.
///
/// # Source
///
/// Qwen2-VL (arXiv:2409.12191), section 2.1: `Sections` is its M-RoPE of time, height and width, and `Equal(2)` the encoding of the patches of
/// its images, as in EVA-02 (arXiv:2303.11331).
///
/// ```
/// use burn_attn::positions::{RotaryAxes, RotaryConfig};
///
/// let qwen2_vl = RotaryConfig::new().with_axes(RotaryAxes::Sections(vec![16, 24, 24]));
/// let patches = RotaryConfig::new().with_axes(RotaryAxes::Equal(2));
/// assert!(qwen2_vl.validate(128).is_ok() && patches.validate(80).is_ok());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum RotaryAxes {
    /// All pairs turn with one axis.
    #[default]
    One,
    /// The first `sections[0]` pairs turn with the first axis, the next `sections[1]` with the second, and so on; the angle per token is
    /// that of `One`.
    Sections(Vec<usize>),
    /// As many pairs turn with each of this many axes. The angles per token begin anew with each axis, as if it were a `rotary_dim` that is
    /// this many times smaller.
    Equal(usize),
}

impl burn::config::Config for RotaryAxes {}

impl RotaryAxes {
    /// How many pairs turn with each axis.
    fn sections(&self, pairs: usize) -> Vec<usize> {
        match self {
            Self::One => vec![pairs],
            Self::Sections(sections) => sections.clone(),
            Self::Equal(axes) => vec![pairs / axes; *axes],
        }
    }

    /// Fails if the axes do not cover this many pairs.
    fn check(&self, pairs: usize) -> Result<(), String> {
        let add = |sum: usize, &pairs: &usize| sum.checked_add(pairs);
        let sum = |sections: &[usize]| sections.iter().try_fold(0, add);
        match self {
            Self::Sections(sections) if sum(sections) != Some(pairs) => Err(format!(
                "axes Sections{sections:?} do not add up to {pairs} pairs"
            )),
            Self::Equal(axes) if *axes == 0 || !pairs.is_multiple_of(*axes) => Err(format!(
                "{pairs} pairs cannot be shared by axes Equal({axes})"
            )),
            _ => Ok(()),
        }
    }
}

impl RotaryConfig {
    /// Whether a module can be built for heads of width `d_head`. The error names the fields and values that contradict each other.
    pub fn validate(&self, d_head: usize) -> Result<(), ConfigError> {
        const CONFIG: &str = "RotaryConfig";
        let rotary_dim = self.rotary_dim(d_head);
        let sizes = [
            ("max_len", self.max_len),
            ("d_head", d_head),
            ("rotary_dim", rotary_dim),
        ];
        ConfigError::check_positive(CONFIG, &sizes)?;
        ConfigError::check(CONFIG, rotary_dim <= d_head, || {
            format!("rotary_dim {rotary_dim} is more than d_head {d_head}")
        })?;
        ConfigError::check(CONFIG, rotary_dim.is_multiple_of(2), || {
            let field = self.rotary_dim.map_or("d_head", |_| "rotary_dim");
            format!("{field} {rotary_dim} is odd, but numbers are rotated in pairs")
        })?;
        ConfigError::check(CONFIG, self.base.is_finite() && self.base > 1.0, || {
            format!("base must be finite and more than 1, got {}", self.base)
        })?;
        let of_axes = self.axes.check(rotary_dim / 2);
        let valid = of_axes.and_then(|()| self.scaling.check(self.rotary_dim_of_axis(d_head)));
        valid.map_err(|reason| ConfigError::new(CONFIG, reason))
    }

    /// Builds the tables for heads of width `d_head`, or panics with the sentence of [`validate`](Self::validate).
    /// They take `max_len · rotary_dim` numbers of memory.
    pub fn init(&self, d_head: usize, device: &Device) -> Rotary {
        let angles = Angles {
            frequencies: self.frequencies(d_head),
            factor: self.scaling.attention_factor(),
        };
        let positions: Vec<usize> = (0..self.max_len).collect();
        let [cos, sin] = (angles.tables(&positions)).map(|table| fixed_table(table, device));
        Rotary {
            cos,
            sin,
            angles,
            d_head,
            layout: self.layout,
            sections: self.axes.sections(self.rotary_dim(d_head) / 2),
        }
    }

    /// The angle per token of each of the `rotary_dim / 2` pairs (radians), stretched according to [`scaling`](RotaryScaling), or a panic
    /// with the sentence of [`validate`](Self::validate).
    pub fn frequencies(&self, d_head: usize) -> Vec<f64> {
        expect_valid(self.validate(d_head));
        let rotary_dim = self.rotary_dim_of_axis(d_head);
        let of_axis = self.scaling.frequencies(self.base, rotary_dim);
        of_axis.repeat(self.rotary_dim(d_head) / rotary_dim)
    }

    /// Over how many numbers the wavelengths go.
    fn rotary_dim_of_axis(&self, d_head: usize) -> usize {
        match self.axes {
            RotaryAxes::Equal(axes) => self.rotary_dim(d_head) / axes,
            RotaryAxes::One | RotaryAxes::Sections(_) => self.rotary_dim(d_head),
        }
    }

    fn rotary_dim(&self, d_head: usize) -> usize {
        self.rotary_dim.unwrap_or(d_head)
    }
}
