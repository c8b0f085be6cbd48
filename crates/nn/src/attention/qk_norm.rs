//! Normalised queries and keys.

use burn::{
    config::Config,
    module::{Module, Param},
    nn::{Initializer, RmsNorm, RmsNormConfig},
    tensor::{Device, Tensor},
};

use crate::error::ConfigError;

/// How the queries and keys of each head are normalised before their dot products.
///
/// Large models train more stably with it: the scores cannot grow with the weights.
#[derive(Config, Debug, PartialEq)]
pub enum QkNormConfig {
    /// Divides by the root mean square and multiplies by a learned number per dimension, head by head, as Qwen 3
    /// (arXiv:2505.09388) and Gemma 3 (arXiv:2503.19786) do. OLMo 2 (arXiv:2501.00656) normalises queries and keys as wide as
    /// their projections, before they are split into heads: its weights have no place here.
    Rms(RmsQkNorm),
    /// Divides by the Euclidean length, and multiplies the queries by a learned number per head; the scores are
    /// cosines times that number, without `1 / √d_head` ("Query-key normalization for transformers", arXiv:2010.04245,
    /// equation 4).
    L2(L2QkNorm),
}

/// Numbers of [`QkNormConfig::Rms`].
#[derive(Config, Debug, PartialEq)]
pub struct RmsQkNorm {
    /// Added to the mean square.
    #[config(default = 1e-6)]
    pub epsilon: f64,
}

/// Numbers of [`QkNormConfig::L2`].
#[derive(Config, Debug, PartialEq)]
pub struct L2QkNorm {
    /// Where the learned factor starts; the paper's is `log2(len² − len)` of the training sequences' 97.5th percentile.
    #[config(default = 10.0)]
    pub factor: f64,
    /// Least length (as a Euclidean norm) by which is divided.
    #[config(default = 1e-6)]
    pub epsilon: f64,
}

impl QkNormConfig {
    /// By the root mean square.
    pub fn rms() -> Self {
        Self::Rms(RmsQkNorm::new())
    }

    /// By the Euclidean length.
    pub fn l2() -> Self {
        Self::L2(L2QkNorm::new())
    }

    pub(super) fn validate(&self, config: &'static str) -> Result<(), ConfigError> {
        let (name, numbers) = match self {
            Self::Rms(norm) => ("Rms", vec![("epsilon", norm.epsilon)]),
            Self::L2(norm) => {
                let numbers = vec![("epsilon", norm.epsilon), ("factor", norm.factor)];
                ("L2", numbers)
            }
        };
        for (field, number) in numbers {
            if !(number > 0.0 && number.is_finite()) {
                let reason =
                    format!("qk_norm {name}: {field} must be positive and finite, got {number}");
                return Err(ConfigError::Invalid { config, reason });
            }
        }
        Ok(())
    }

    pub(super) fn init(&self, n_heads: usize, d_head: usize, device: &Device) -> QkNorm {
        match self {
            Self::Rms(norm) => {
                let config = RmsNormConfig::new(d_head).with_epsilon(norm.epsilon);
                QkNorm::Rms(RmsPair {
                    query: config.init(device),
                    key: config.init(device),
                })
            }
            Self::L2(norm) => QkNorm::L2(CosinePair {
                factor: Initializer::Constant { value: norm.factor }.init([n_heads], device),
                epsilon: norm.epsilon,
            }),
        }
    }
}

/// The parameters of [`QkNormConfig`].
#[derive(Module, Debug)]
pub enum QkNorm {
    /// By the root mean square.
    Rms(RmsPair),
    /// By the Euclidean length.
    L2(CosinePair),
}

/// Parameters of [`QkNorm::Rms`], shared by the heads.
#[derive(Module, Debug)]
pub struct RmsPair {
    /// `[d_head]`
    pub query: RmsNorm,
    /// `[d_head]`
    pub key: RmsNorm,
}

/// Parameters of [`QkNorm::L2`].
#[derive(Module, Debug)]
pub struct CosinePair {
    /// `[n_heads]`
    pub factor: Param<Tensor<1>>,
    epsilon: f64,
}

impl QkNorm {
    /// `[batch, heads, len, d_head]` to the same shape.
    pub(super) fn query(&self, x: Tensor<4>) -> Tensor<4> {
        match self {
            Self::Rms(pair) => pair.query.forward(x),
            Self::L2(pair) => {
                let factor = pair.factor.val().unsqueeze_dims::<4>(&[0, 2, 3]);
                unit(x, pair.epsilon) * factor
            }
        }
    }

    /// As [`query`](Self::query), for keys.
    pub(super) fn key(&self, x: Tensor<4>) -> Tensor<4> {
        match self {
            Self::Rms(pair) => pair.key.forward(x),
            Self::L2(pair) => unit(x, pair.epsilon),
        }
    }

    /// The factor on the dot products that goes with it, if it is not `1 / √d_head`.
    pub(super) fn scale(&self) -> Option<f64> {
        match self {
            Self::Rms(_) => None,
            Self::L2(_) => Some(1.0),
        }
    }
}

/// `x / max(|x|, epsilon)`, row by row.
fn unit(x: Tensor<4>, epsilon: f64) -> Tensor<4> {
    // The bound is under the root: the gradient of a root at zero is not finite.
    let squares = x.clone().square().sum_dim(3);
    x / squares.clamp_min(epsilon * epsilon).sqrt()
}
