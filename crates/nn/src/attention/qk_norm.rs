//! Normalised queries and keys.

use burn::{
    module::{Module, Param},
    nn::{Initializer, RmsNorm, RmsNormConfig},
    tensor::{DType, Device, Tensor},
};
use burn_attn_derive::Config;
use serde::{Deserialize, Serialize};

use super::heads_config::Sizes;
use crate::{
    error::ConfigError,
    parameter::{floats, wide},
};

/// How the queries and keys of each head are normalised before their dot products.
///
/// Large models train more stably with it, because the scores cannot grow with the weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum QkNormConfig {
    /// Divides by the root mean square of each head and multiplies by a learned number per dimension: Qwen 3
    /// (arXiv:2505.09388), Gemma 3 (arXiv:2503.19786).
    Rms(RmsQkNorm),
    /// The same over all heads together, the whole width of the projection: OLMo 2 (arXiv:2501.00656).
    RmsAcrossHeads(RmsQkNorm),
    /// Divides by the Euclidean length, and multiplies the queries by a learned number per head; the scores are
    /// cosines times that number, without `1 / √d_head` ("Query-key normalization for transformers", arXiv:2010.04245,
    /// equation 4).
    L2(L2QkNorm),
}

/// Parameters of [`QkNormConfig::Rms`] and [`QkNormConfig::RmsAcrossHeads`].
#[derive(Config, Debug, PartialEq)]
pub struct RmsQkNorm {
    /// Added to the mean square.
    #[config(default = 1e-6)]
    pub epsilon: f64,
}

/// Parameters of [`QkNormConfig::L2`].
#[derive(Config, Debug, PartialEq)]
pub struct L2QkNorm {
    /// Initial value of the learned factor. The paper uses `log2(len² − len)`, with the 97.5th percentile of the training
    /// sequences' lengths.
    #[config(default = 10.0)]
    pub factor: f64,
    /// The smallest divisor (a Euclidean length).
    #[config(default = 1e-6)]
    pub epsilon: f64,
}

impl QkNormConfig {
    /// [`Rms`](Self::Rms) with its default epsilon.
    pub fn rms() -> Self {
        Self::Rms(RmsQkNorm::new())
    }

    /// [`RmsAcrossHeads`](Self::RmsAcrossHeads) with its default epsilon.
    pub fn rms_across_heads() -> Self {
        Self::RmsAcrossHeads(RmsQkNorm::new())
    }

    /// [`L2`](Self::L2) with its default factor and epsilon.
    pub fn l2() -> Self {
        Self::L2(L2QkNorm::new())
    }

    pub(super) fn validate(&self, config: &'static str) -> Result<(), ConfigError> {
        let (name, numbers) = match self {
            Self::Rms(norm) => ("Rms", vec![("epsilon", norm.epsilon)]),
            Self::RmsAcrossHeads(norm) => ("RmsAcrossHeads", vec![("epsilon", norm.epsilon)]),
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

    pub(super) fn init(&self, sizes: Sizes, device: &Device) -> QkNorm {
        let rms = |norm: &RmsQkNorm, [query, key]: [usize; 2]| {
            let of_width = |width| RmsNormConfig::new(width).with_epsilon(norm.epsilon);
            QkNorm {
                query: Some(of_width(query).init(device)),
                key: Some(of_width(key).init(device)),
                factor: None,
                epsilon: norm.epsilon,
            }
        };
        match self {
            Self::Rms(norm) => rms(norm, [sizes.d_head; 2]),
            Self::RmsAcrossHeads(norm) => {
                let [query, key, _] = sizes.widths();
                rms(norm, [query, key])
            }
            Self::L2(norm) => {
                let factor = Initializer::Constant { value: norm.factor };
                QkNorm {
                    query: None,
                    key: None,
                    factor: Some(factor.init([sizes.n_heads], device)),
                    epsilon: norm.epsilon,
                }
            }
        }
    }
}

/// The module that [`QkNormConfig`] describes: `query` and `key` for `Rms` and `RmsAcrossHeads`, `factor` for `L2`.
///
/// It is a struct, not an enum, so that the names of its parameters in a file are `query.gamma`, `key.gamma` and `factor`.
///
/// # Source
///
/// The variants of [`QkNormConfig`] name theirs.
#[derive(Module, Debug)]
pub struct QkNorm {
    /// Norm of the queries, `[d_head]`, or across heads `[n_heads · d_head]`.
    pub query: Option<RmsNorm>,
    /// Norm of the keys, `[d_head]`, or across heads `[n_kv_heads · d_head]`.
    pub key: Option<RmsNorm>,
    /// Factor on the normalised queries: `[n_heads]`.
    pub factor: Option<Param<Tensor<1>>>,
    epsilon: f64,
}

impl QkNorm {
    /// `[batch, heads, len, d_head]` to the same shape.
    pub(super) fn query(&self, x: Tensor<4>) -> Tensor<4> {
        let x = self.normalised(self.query.as_ref(), x);
        match &self.factor {
            Some(factor) => x * floats(factor).unsqueeze_dims::<4>(&[0, 2, 3]),
            None => x,
        }
    }

    /// As [`query`](Self::query), for keys.
    pub(super) fn key(&self, x: Tensor<4>) -> Tensor<4> {
        self.normalised(self.key.as_ref(), x)
    }

    fn normalised(&self, rms: Option<&RmsNorm>, x: Tensor<4>) -> Tensor<4> {
        match rms {
            Some(norm) => rms_norm(norm, x),
            None => unit(x, self.epsilon),
        }
    }

    /// The factor on the dot products that this norm requires, if it is not `1 / √d_head`.
    pub(super) fn scale(&self) -> Option<f64> {
        self.factor.as_ref().map(|_| 1.0)
    }
}

/// `x / √(mean(x²) + epsilon) · gamma`, row by row, or over the rows of all heads if gamma is as wide as all heads.
fn rms_norm(norm: &RmsNorm, x: Tensor<4>) -> Tensor<4> {
    let [_, n_heads, _, d_head] = x.dims();
    let [width] = norm.gamma.dims();
    // Neighbouring numbers of gamma belong to one head.
    let heads = width / d_head;
    let dtype = x.dtype();
    let x = x.cast(wide(dtype));
    let gamma = floats(&norm.gamma).cast(wide(dtype));
    let gamma = gamma.reshape([1, heads, 1, d_head]);
    let squares = x.clone().square().mean_dim(3);
    let squares = match heads {
        1 if n_heads > 1 => squares,
        _ => squares.mean_dim(1),
    };
    (x / (squares + norm.epsilon).sqrt() * gamma).cast(dtype)
}

/// `x / max(|x|, epsilon)`, row by row.
fn unit(x: Tensor<4>, epsilon: f64) -> Tensor<4> {
    let dtype = x.dtype();
    // In f16, 256 has a square that is infinite, and 1e-4 one that is zero.
    let (x, least) = match dtype {
        DType::F64 => (x, f64::MIN_POSITIVE),
        _ => (x.cast(DType::F32), f32::MIN_POSITIVE.into()),
    };
    // The bound is under the root, whose gradient at zero is not finite. It must not be zero itself.
    let bound = (epsilon * epsilon).max(least);
    let squares = x.clone().square().sum_dim(3).clamp_min(bound);
    (x / squares.sqrt()).cast(dtype)
}
