//! Configuration of rotary positions: the pairs and their angles.

use burn::tensor::{Device, Tensor};
use burn_attn_derive::Config;
use burn_attn_ops::RotaryLayout;

use super::{Rotary, RotaryScaling, rotation::Angles};
use crate::error::{ConfigError, expect_valid};

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
        let valid = self.scaling.check(rotary_dim);
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
        let [cos, sin] = (angles.tables(&positions)).map(|table| Tensor::from_data(table, device));
        Rotary {
            cos,
            sin,
            angles,
            d_head,
            layout: self.layout,
        }
    }

    /// The angle per token of each of the `rotary_dim / 2` pairs (radians), stretched according to [`scaling`](RotaryScaling), or a panic
    /// with the sentence of [`validate`](Self::validate).
    pub fn frequencies(&self, d_head: usize) -> Vec<f64> {
        expect_valid(self.validate(d_head));
        self.scaling.frequencies(self.base, self.rotary_dim(d_head))
    }

    fn rotary_dim(&self, d_head: usize) -> usize {
        self.rotary_dim.unwrap_or(d_head)
    }
}
