//! Layer norm or RMS norm.

use burn::{
    config::Config,
    module::Module,
    nn::{LayerNorm, LayerNormConfig, RmsNorm, RmsNormConfig},
    tensor::{Device, Tensor},
};

use crate::error::{ConfigError, expect_valid};

/// Which norm, as configuration of [`Norm`].
#[derive(Config, Debug, PartialEq)]
pub enum NormConfig {
    /// Subtracts the mean and divides by the standard deviation.
    LayerNorm {
        /// Added to the variance.
        epsilon: f64,
        /// Whether a learned bias is added.
        bias: bool,
    },
    /// Divides by the root mean square.
    RmsNorm {
        /// Added to the mean square.
        epsilon: f64,
    },
}

impl NormConfig {
    /// Layer norm as in PyTorch: epsilon 1e-5, with a bias.
    pub fn layer_norm() -> Self {
        Self::LayerNorm {
            epsilon: 1e-5,
            bias: true,
        }
    }

    /// RMS norm with an epsilon of 1e-5, as in Llama 2.
    pub fn rms_norm() -> Self {
        Self::RmsNorm { epsilon: 1e-5 }
    }

    /// Whether a module can be built.
    ///
    /// # Errors
    ///
    /// Names an epsilon that is not positive.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let (name, epsilon) = match self {
            Self::LayerNorm { epsilon, .. } => ("LayerNorm", epsilon),
            Self::RmsNorm { epsilon } => ("RmsNorm", epsilon),
        };
        if *epsilon > 0.0 && epsilon.is_finite() {
            return Ok(());
        }
        let reason = format!("{name}: epsilon must be positive and finite, got {epsilon}");
        Err(ConfigError::Invalid {
            config: "NormConfig",
            reason,
        })
    }

    /// Builds the norm of vectors of width `d_model`.
    ///
    /// # Panics
    ///
    /// With the sentence of [`validate`](Self::validate), and when the width is 0.
    pub fn init(&self, d_model: usize, device: &Device) -> Norm {
        expect_valid(self.validate());
        expect_valid(ConfigError::check_positive(
            "NormConfig",
            &[("d_model", d_model)],
        ));
        match *self {
            Self::LayerNorm { epsilon, bias } => Norm::LayerNorm(
                LayerNormConfig::new(d_model)
                    .with_epsilon(epsilon)
                    .with_bias(bias)
                    .init(device),
            ),
            Self::RmsNorm { epsilon } => Norm::RmsNorm(
                RmsNormConfig::new(d_model)
                    .with_epsilon(epsilon)
                    .init(device),
            ),
        }
    }
}

/// Brings every vector to the same size.
///
/// ```text
/// LayerNorm: (x − mean(x)) / √(variance(x) + epsilon) · gamma + beta
/// RmsNorm:   x / √(mean(x²) + epsilon) · gamma
/// ```
///
/// # Source
///
/// "Layer normalization" (arXiv:1607.06450); "Root mean square layer normalization" (arXiv:1910.07467). PyTorch
/// equivalents: `nn.LayerNorm` and `nn.RMSNorm`.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_attn::NormConfig;
///
/// let device = Device::default();
/// let norm = NormConfig::rms_norm().init(2, &device);
/// let y: Vec<f32> = norm.forward(Tensor::<2>::from_data([[3.0, 4.0]], &device)).into_data().iter().collect();
/// assert!((y[0] - 3.0 / 12.5f32.sqrt()).abs() < 1e-5); // the mean square is (9 + 16) / 2
/// ```
#[derive(Module, Debug)]
pub enum Norm {
    /// Subtracts the mean and divides by the standard deviation.
    LayerNorm(LayerNorm),
    /// Divides by the root mean square.
    RmsNorm(RmsNorm),
}

impl Norm {
    /// The normalised vectors.
    ///
    /// # Shapes
    ///
    /// - input, output: `[.., d_model]`
    ///
    /// # Panics
    ///
    /// When the last axis is not `d_model`.
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        // Not every backend of Burn 0.22.1 can reduce nothing (see `linear::apply`).
        if x.shape().num_elements() == 0 {
            return x;
        }
        match self {
            Self::LayerNorm(norm) => norm.forward(x),
            Self::RmsNorm(norm) => norm.forward(x),
        }
    }
}
