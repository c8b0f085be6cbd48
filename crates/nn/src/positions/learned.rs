//! Learned positions.

use burn::{
    module::{Module, Param},
    nn::Initializer,
    tensor::{Device, Tensor, assert_shape},
};
use burn_attn_derive::Config;

use super::{Positions, add_rows};
use crate::{
    error::{ConfigError, expect_valid},
    parameter::floats,
};

/// Configuration of [`Learned`].
#[derive(Config, Debug)]
pub struct LearnedConfig {
    /// Width of the embeddings the positions are added to.
    pub d_model: usize,
    /// Length of the longest sequence (tokens).
    pub max_len: usize,
    /// How the table is initialised.
    #[config(default = "Initializer::Normal { mean: 0.0, std: 0.02 }")]
    pub initializer: Initializer,
}

impl LearnedConfig {
    /// Whether a module can be built. The error names the field that is zero.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let sizes = [("d_model", self.d_model), ("max_len", self.max_len)];
        ConfigError::check_positive("LearnedConfig", &sizes)
    }

    /// Builds the module, or panics with the sentence of [`validate`](Self::validate).
    pub fn init(&self, device: &Device) -> Learned {
        expect_valid(self.validate());
        Learned {
            table: self.initializer.init([self.max_len, self.d_model], device),
        }
    }
}

/// Adds a learned vector per position.
///
/// # Source
///
/// "Convolutional sequence to sequence learning" (arXiv:1705.03122), section 3.1; BERT and GPT-2. PyTorch equivalent: an
/// `nn.Embedding` of the positions.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_attn::positions::LearnedConfig;
///
/// let device = Device::default();
/// let positions = LearnedConfig::new(16, 64).init(&device);
/// let x = positions.forward(Tensor::zeros([2, 7, 16], &device));
/// assert_eq!(x.dims(), [2, 7, 16]);
/// ```
#[derive(Module, Debug)]
pub struct Learned {
    /// One row per position: `[max_len, d_model]`.
    pub table: Param<Tensor<2>>,
}

impl Learned {
    /// `x` plus the positions `0 .. len`: [`forward_from`](Self::forward_from) 0.
    pub fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        self.forward_from(x, 0)
    }

    /// `x` plus its positions, both `[batch, len, d_model]`, for sequences that continue from one offset, or from an offset each, with or
    /// without padding at the end. Texts packed into one row each start again at 0: [`Positions::PerToken`].
    ///
    /// Panics when a token is beyond the table, the positions do not fit the batch or the width differs. It takes one addition per number, and a
    /// copy of the table's rows if sequences start at different positions.
    pub fn forward_from(&self, x: Tensor<3>, positions: impl Into<Positions>) -> Tensor<3> {
        let [_, d_model] = self.table.dims();
        assert_shape!(x, [_, _, d_model]);
        add_rows("Learned", x, floats(&self.table), &positions.into())
    }
}
