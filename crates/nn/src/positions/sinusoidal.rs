//! Fixed positions made of sines and cosines.

use burn::{
    module::Module,
    tensor::{DType, Device, Tensor, TensorData, assert_shape},
};
use burn_attn_derive::Config;

use super::{Positions, add_rows, fixed_table};
use crate::error::{ConfigError, expect_valid};

/// Configuration of [`Sinusoidal`].
#[derive(Config, Debug)]
pub struct SinusoidalConfig {
    /// Width of the embeddings the positions are added to.
    pub d_model: usize,
    /// Length of the longest sequence (tokens).
    #[config(default = 5000)]
    pub max_len: usize,
    /// Longest wavelength, as a multiple of 2π (tokens).
    #[config(default = 10_000)]
    pub max_timescale: usize,
    /// The order of the columns.
    #[config(
        default = "SinusoidalLayout::Interleaved",
        missing = "SinusoidalLayout::Interleaved"
    )]
    pub layout: SinusoidalLayout,
}

/// The order of the columns of [`Sinusoidal`].
#[derive(burn::config::Config, Debug, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SinusoidalLayout {
    /// A sine and its cosine side by side, as in the paper.
    Interleaved,
    /// The same waves, all sines before all cosines: Marian.
    HalfSplit,
    /// All sines before all cosines, with wavelengths up to `max_timescale` itself (`d_model / 2 − 1` steps instead of
    /// `d_model / 2`): tensor2tensor and Whisper.
    Tensor2Tensor,
}

impl SinusoidalConfig {
    /// Whether a module can be built. The error names a field that is zero, or a width that the layout does not allow.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let sizes = [
            ("d_model", self.d_model),
            ("max_len", self.max_len),
            ("max_timescale", self.max_timescale),
        ];
        ConfigError::check_positive("SinusoidalConfig", &sizes)?;
        let d_model = self.d_model;
        let has_steps = d_model.is_multiple_of(2) && d_model > 2;
        let fits = has_steps || self.layout != SinusoidalLayout::Tensor2Tensor;
        ConfigError::check("SinusoidalConfig", fits, || {
            format!("layout Tensor2Tensor needs an even d_model of at least 4, got {d_model}")
        })
    }

    /// Builds the table, or panics with the sentence of [`validate`](Self::validate).
    /// It takes `max_len · d_model` numbers of memory.
    pub fn init(&self, device: &Device) -> Sinusoidal {
        expect_valid(self.validate());
        let positions: Vec<usize> = (0..self.max_len).collect();
        Sinusoidal {
            table: fixed_table(self.table(&positions), device),
            config: self.clone(),
        }
    }

    /// The rows of these positions, `[positions, d_model]` in f64.
    ///
    /// In f32 the angle of position 5,000 would be off by up to 0.0004, that of position one million by 0.06.
    fn table(&self, positions: &[usize]) -> TensorData {
        let waves = self.waves();
        let rows = positions.iter().flat_map(|&position| {
            let waves = waves.iter();
            waves.map(move |(wave, timescale)| wave(position as f64 / timescale))
        });
        TensorData::new(rows.collect::<Vec<f64>>(), [positions.len(), self.d_model])
    }

    /// The wave of every column, and the divisor of the position.
    fn waves(&self) -> Vec<(Wave, f64)> {
        let width = self.d_model;
        let sines = width.div_ceil(2);
        let column = |column: usize| {
            let (is_sine, pair) = match self.layout {
                SinusoidalLayout::Interleaved => (column.is_multiple_of(2), column / 2),
                _ => (column < sines, column % sines),
            };
            // ANCHOR: sinusoidal-waves
            let exponent = match self.layout {
                SinusoidalLayout::Tensor2Tensor => pair as f64 / (sines - 1) as f64,
                _ => (2 * pair) as f64 / width as f64,
            };
            let wave: Wave = if is_sine { f64::sin } else { f64::cos };
            (wave, (self.max_timescale as f64).powf(exponent))
            // ANCHOR_END: sinusoidal-waves
        };
        (0..width).map(column).collect()
    }
}

type Wave = fn(f64) -> f64;

/// Adds a fixed pattern of sines and cosines per position.
///
/// ```text
/// PE(position, 2i)     = sin(position / 10000^(2i / d_model))
/// PE(position, 2i + 1) = cos(position / 10000^(2i / d_model))
/// ```
///
/// [`SinusoidalLayout`] has other orders of the columns.
///
/// # Source
///
/// "Attention is all you need" (arXiv:1706.03762), section 3.5. PyTorch equivalent: none in the library;
/// `MarianSinusoidalPositionalEmbedding` of Hugging Face's `transformers` is the layout `HalfSplit`.
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
    #[module(skip)]
    config: SinusoidalConfig,
}

impl Sinusoidal {
    /// `x` plus the positions `0 .. len`: [`forward_from`](Self::forward_from) 0.
    pub fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        self.forward_from(x, 0)
    }

    /// `x` plus its positions, with the shapes, panics and cost of [`Learned::forward_from`](super::Learned::forward_from). The table is
    /// in f32, or in f64 if that is the default type of the device it was built for; if it is in f32, rows for an `x` in f64 are computed here, a
    /// sine or cosine per number.
    pub fn forward_from(&self, x: Tensor<3>, positions: impl Into<Positions>) -> Tensor<3> {
        let [max_len, d_model] = self.table.dims();
        assert_shape!(x, [_, _, d_model]);
        let [batch, len, _] = x.dims();
        let (positions, dtype) = (positions.into(), x.dtype());
        if dtype != DType::F64 || self.table.dtype() == dtype || batch * len == 0 {
            return add_rows("Sinusoidal", x, self.table.clone(), &positions);
        }
        let rows = positions.table_rows("Sinusoidal", [batch, len], max_len);
        let rows = rows.listed(len);
        let table = Tensor::<2>::from_data(self.config.table(&rows), (&x.device(), dtype));
        x + table.reshape([rows.len() / len, len, d_model])
    }
}
