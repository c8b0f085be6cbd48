//! Layer norm or RMS norm.

use burn::{
    config::Config,
    module::{Module, Param},
    nn::Initializer,
    tensor::{DType, Device, Tensor, assert_shape, module::layer_norm},
};
use serde::{Deserialize, Serialize};

use crate::{
    error::{ConfigError, expect_valid},
    parameter::{floats, rms_norm, wide},
};

/// Configuration of [`Norm`], made by [`layer_norm`](Self::layer_norm) or [`rms_norm`](Self::rms_norm).
///
/// ```
/// use burn_attn::NormConfig;
///
/// let bert = NormConfig::layer_norm().with_epsilon(1e-12);
/// let cohere = NormConfig::layer_norm().without_bias();
/// let llama = NormConfig::rms_norm();
/// let gemma = NormConfig::rms_norm().with_epsilon(1e-6).with_unit_offset();
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub enum NormConfig {
    /// Subtracts the mean and divides by the standard deviation.
    #[non_exhaustive]
    LayerNorm {
        /// Added to the variance.
        epsilon: f64,
        /// Whether a learned bias is added.
        bias: bool,
        /// Whether the factor is `1 + gamma`.
        #[serde(default)]
        unit_offset: bool,
    },
    /// Divides by the root mean square.
    #[non_exhaustive]
    RmsNorm {
        /// Added to the mean square.
        epsilon: f64,
        /// Whether the factor is `1 + gamma`.
        #[serde(default)]
        unit_offset: bool,
    },
}

impl Config for NormConfig {}

impl NormConfig {
    /// Layer norm as in PyTorch and burn-nn: epsilon 1e-5, with a bias.
    pub fn layer_norm() -> Self {
        Self::LayerNorm {
            epsilon: 1e-5,
            bias: true,
            unit_offset: false,
        }
    }

    /// RMS norm with an epsilon of 1e-5, as in Llama 2.
    pub fn rms_norm() -> Self {
        Self::RmsNorm {
            epsilon: 1e-5,
            unit_offset: false,
        }
    }

    /// Sets the number added to the variance or mean square.
    pub fn with_epsilon(mut self, number: f64) -> Self {
        let (Self::LayerNorm { epsilon, .. } | Self::RmsNorm { epsilon, .. }) = &mut self;
        *epsilon = number;
        self
    }

    /// Without a learned bias, which RMS norm never has.
    pub fn without_bias(mut self) -> Self {
        if let Self::LayerNorm { bias, .. } = &mut self {
            *bias = false;
        }
        self
    }

    /// Multiplies by `1 + gamma`, with a gamma that starts at 0: RMS norm in Gemma, layer norm in Nemotron.
    ///
    /// The stored parameter, in these models' files too, is the distance from 1. So weight decay pulls the factor towards 1
    /// instead of 0, and half precision keeps small distances accurately.
    pub fn with_unit_offset(mut self) -> Self {
        let (Self::LayerNorm { unit_offset, .. } | Self::RmsNorm { unit_offset, .. }) = &mut self;
        *unit_offset = true;
        self
    }

    /// Whether a module can be built. The error names an epsilon that is not positive and finite.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let name = match self {
            Self::LayerNorm { .. } => "LayerNorm: epsilon",
            Self::RmsNorm { .. } => "RmsNorm: epsilon",
        };
        ConfigError::check_finite_positive("NormConfig", &[(name, Some(self.epsilon()))])
    }

    /// Builds the norm for vectors of width `d_model`, or panics with the sentence of [`validate`](Self::validate), or if the width is 0.
    pub fn init(&self, d_model: usize, device: &Device) -> Norm {
        expect_valid(self.validate());
        let sizes = [("d_model", d_model)];
        expect_valid(ConfigError::check_positive("NormConfig", &sizes));
        let gamma = match self.unit_offset() {
            true => Initializer::Zeros,
            false => Initializer::Ones,
        };
        let has_bias = matches!(self, Self::LayerNorm { bias: true, .. });
        Norm {
            gamma: gamma.init([d_model], device),
            beta: has_bias.then(|| Initializer::Zeros.init([d_model], device)),
            config: self.clone(),
        }
    }

    pub(crate) fn epsilon(&self) -> f64 {
        let (Self::LayerNorm { epsilon, .. } | Self::RmsNorm { epsilon, .. }) = self;
        *epsilon
    }

    fn unit_offset(&self) -> bool {
        let (Self::LayerNorm { unit_offset, .. } | Self::RmsNorm { unit_offset, .. }) = self;
        *unit_offset
    }
}

/// The states `x`, `[batch, len, d_model]`, normalised if there is a norm. Panics when its width differs.
pub fn normalised(norm: &Option<Norm>, x: Tensor<3>) -> Tensor<3> {
    match norm {
        Some(norm) => norm.forward(x),
        None => x,
    }
}

/// Layer norm or RMS norm: gives every vector the same magnitude.
///
/// ```text
/// LayerNorm: (x − mean(x)) / √(variance(x) + epsilon) · gamma + beta
/// RmsNorm:   x / √(mean(x²) + epsilon) · gamma
/// ```
///
/// With [a unit offset](NormConfig::with_unit_offset), `1 + gamma` takes the place of `gamma`.
///
/// # Source
///
/// "Layer normalization" (arXiv:1607.06450); "Root mean square layer normalization" (arXiv:1910.07467). PyTorch
/// equivalents: `nn.LayerNorm` and `nn.RMSNorm`.
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
pub struct Norm {
    /// The factor on every number, or with a unit offset the factor minus 1: `[d_model]`.
    pub gamma: Param<Tensor<1>>,
    /// The bias added to every number, in a layer norm that has one: `[d_model]`.
    pub beta: Option<Param<Tensor<1>>>,
    #[module(skip)]
    config: NormConfig,
}

impl Norm {
    /// The configuration that builds a norm like this one.
    pub fn config(&self) -> NormConfig {
        let mut config = self.config.clone();
        if let NormConfig::LayerNorm { bias, .. } = &mut config {
            *bias = self.beta.is_some();
        }
        config
    }

    /// The normalised vectors, `[.., d_model]`, in the dtype of the input. Panics when the last axis is not `d_model`.
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        let [d_model] = self.gamma.dims();
        assert_shape!(x, [.., d_model]);
        // Not every backend of Burn 0.22.1 can reduce an empty tensor (see `linear::apply`).
        if x.shape().num_elements() == 0 {
            return x;
        }
        // Squares of numbers beyond 255 are infinite in f16, half precision rounds a small gamma away from 1, and in training Burn
        // computes mean, variance and their gradients by operations that each round.
        let (dtype, wide) = (x.dtype(), wide(x.dtype()));
        let (factor, epsilon) = (self.factor(wide), self.config.epsilon());
        match self.config {
            NormConfig::LayerNorm { .. } => {
                let beta = self.beta.as_ref().map(|beta| floats(beta).cast(wide));
                layer_norm(x.cast(wide), factor, beta, epsilon).cast(dtype)
            }
            NormConfig::RmsNorm { .. } => rms_norm(x, &[D - 1], epsilon, factor.unsqueeze()),
        }
    }

    /// The factor on every number, `[d_model]`.
    pub(crate) fn factor(&self, dtype: DType) -> Tensor<1> {
        let gamma = floats(&self.gamma).cast(dtype);
        match self.config.unit_offset() {
            true => gamma + 1.0,
            false => gamma,
        }
    }
}
