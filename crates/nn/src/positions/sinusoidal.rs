//! Fixed positions made of sines and cosines.

use burn::{
    module::Module,
    tensor::{Device, Tensor, TensorData, assert_shape},
};
use burn_attn_derive::Config;

use super::{Positions, add_rows};
use crate::error::{ConfigError, expect_valid};

/// Configuration of [`Sinusoidal`].
#[derive(Config, Debug)]
pub struct SinusoidalConfig {
    /// Width of the embeddings the positions are added to.
    pub d_model: usize,
    /// Longest sequence (tokens).
    #[config(default = 5000)]
    pub max_len: usize,
    /// Longest wavelength, as a multiple of 2π (tokens).
    #[config(default = 10_000)]
    pub max_timescale: usize,
}

impl SinusoidalConfig {
    /// Whether a module can be built.
    ///
    /// # Errors
    ///
    /// Names the field that is zero.
    pub fn validate(&self) -> Result<(), ConfigError> {
        ConfigError::check_positive(
            "SinusoidalConfig",
            &[
                ("d_model", self.d_model),
                ("max_len", self.max_len),
                ("max_timescale", self.max_timescale),
            ],
        )
    }

    /// Builds the table.
    ///
    /// # Panics
    ///
    /// With the sentence of [`validate`](Self::validate).
    pub fn init(&self, device: &Device) -> Sinusoidal {
        expect_valid(self.validate());
        let (len, width) = (self.max_len, self.d_model);
        let mut table = Vec::with_capacity(len * width);
        for position in 0..len {
            for dim in 0..width {
                // In f64: in f32 the angles of late positions are off by several hundredths.
                let exponent = (dim - dim % 2) as f64 / width as f64;
                let angle = position as f64 / (self.max_timescale as f64).powf(exponent);
                let value = if dim % 2 == 0 {
                    angle.sin()
                } else {
                    angle.cos()
                };
                table.push(value as f32);
            }
        }
        Sinusoidal {
            table: Tensor::from_data(TensorData::new(table, [len, width]), device),
        }
    }
}

/// Adds a fixed pattern of waves to every position.
///
/// ```text
/// PE(position, 2i)     = sin(position / 10000^(2i / d_model))
/// PE(position, 2i + 1) = cos(position / 10000^(2i / d_model))
/// ```
///
/// # Source
///
/// "Attention is all you need" (arXiv:1706.03762), section 3.5.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_attn::positions::SinusoidalConfig;
///
/// let device = Device::default();
/// let positions = SinusoidalConfig::new(16).init(&device);
/// let x = positions.forward(Tensor::zeros([2, 7, 16], &device));
/// assert_eq!(x.dims(), [2, 7, 16]);
/// ```
#[derive(Module, Debug)]
pub struct Sinusoidal {
    table: Tensor<2>,
}

impl Sinusoidal {
    /// `x` plus the positions `0 .. len`.
    ///
    /// # Shapes
    ///
    /// - input, output: `[batch, len, d_model]`
    ///
    /// # Panics
    ///
    /// When the sequence is longer than `max_len` or the width differs.
    pub fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        self.forward_from(x, 0)
    }

    /// `x` plus its positions, for sequences that go on: all from one offset, or each from its own, with padding behind it
    /// or without. Of several texts packed into one row, each has to begin anew: [`Positions::PerToken`].
    ///
    /// # Panics
    ///
    /// When a token stands past the table, the positions are not those of the batch or the width differs.
    pub fn forward_from(&self, x: Tensor<3>, positions: impl Into<Positions>) -> Tensor<3> {
        let [_, d_model] = self.table.dims();
        assert_shape!(x, [_, _, d_model]);
        add_rows("Sinusoidal", x, self.table.clone(), &positions.into())
    }
}
