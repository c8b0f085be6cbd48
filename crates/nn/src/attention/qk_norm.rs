//! Normalised queries and keys.

use burn::{
    module::{Module, Param},
    nn::Initializer,
    tensor::{DType, Device, Tensor},
};
use serde::{Deserialize, Serialize};

use crate::{
    Norm, NormConfig,
    error::ConfigError,
    parameter::{floats, rms_norm, wide},
};

/// How the queries and keys of each head are normalised before their dot products.
///
/// Large models train more stably with it, because the scores cannot grow with the weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub enum QkNormConfig {
    /// Divides by the root mean square of each head and multiplies by a learned factor per dimension: Qwen 3
    /// (arXiv:2505.09388).
    Rms {
        /// Added to the mean square.
        epsilon: f64,
    },
    /// A norm over each head, whose learned numbers all heads share: [`Rms`](Self::Rms) with a unit offset (Gemma 3, arXiv:2503.19786),
    /// layer norm with a bias (Persimmon) or without (ViT-22B, arXiv:2302.05442).
    PerHead(NormConfig),
    /// [`Rms`](Self::Rms) over the whole width of the projection, all heads together: OLMo 2 (arXiv:2501.00656).
    RmsAcrossHeads {
        /// Added to the mean square.
        epsilon: f64,
    },
    /// Divides by the Euclidean length, and multiplies the queries by a learned factor per head. The scores are
    /// cosines times that factor, without `1 / √d_head` ("Query-key normalization for transformers", arXiv:2010.04245,
    /// equation 4).
    L2 {
        /// Initial value of the learned factor. The paper uses `log2(len² − len)`, with
        /// the 97.5th percentile of the training sequences' lengths.
        factor: f64,
        /// The smallest divisor (a Euclidean length).
        epsilon: f64,
    },
}

const EPSILON: f64 = 1e-6;

impl QkNormConfig {
    /// [`Rms`](Self::Rms) with an epsilon of 1e-6.
    pub fn rms() -> Self {
        Self::Rms { epsilon: EPSILON }
    }

    /// [`RmsAcrossHeads`](Self::RmsAcrossHeads) with an epsilon of 1e-6.
    pub fn rms_across_heads() -> Self {
        Self::RmsAcrossHeads { epsilon: EPSILON }
    }

    /// [`L2`](Self::L2) with a factor of 10 and an epsilon of 1e-6.
    pub fn l2() -> Self {
        Self::L2 {
            factor: 10.0,
            epsilon: EPSILON,
        }
    }

    pub(super) fn validate(&self, config: &'static str) -> Result<(), ConfigError> {
        let numbers: &[_] = match *self {
            Self::PerHead(ref norm) => &[("qk_norm PerHead: epsilon", Some(norm.epsilon()))],
            Self::Rms { epsilon } => &[("qk_norm Rms: epsilon", Some(epsilon))],
            Self::RmsAcrossHeads { epsilon } => {
                &[("qk_norm RmsAcrossHeads: epsilon", Some(epsilon))]
            }
            Self::L2 { factor, epsilon } => &[
                ("qk_norm L2: epsilon", Some(epsilon)),
                ("qk_norm L2: factor", Some(factor)),
            ],
        };
        ConfigError::check_finite_positive(config, numbers)
    }

    /// The factor on the dot products that this norm requires, if it is not `1 / √d_head`.
    pub(super) fn scale(&self) -> Option<f64> {
        matches!(self, Self::L2 { .. }).then_some(1.0)
    }

    /// For `n_heads` heads of width `d_head`, whose queries and keys have these `widths` together.
    pub(super) fn init(
        &self,
        n_heads: usize,
        d_head: usize,
        widths: [usize; 2],
        device: &Device,
    ) -> QkNorm {
        let learned = |norm: &NormConfig, widths: [usize; 2]| {
            let [query, key] = widths.map(|width| Some(norm.init(width, device)));
            QkNorm {
                query,
                key,
                factor: None,
                epsilon: norm.epsilon(),
            }
        };
        let rms = |epsilon| NormConfig::rms_norm().with_epsilon(epsilon);
        match *self {
            Self::PerHead(ref norm) => learned(norm, [d_head; 2]),
            Self::Rms { epsilon } => learned(&rms(epsilon), [d_head; 2]),
            Self::RmsAcrossHeads { epsilon } => learned(&rms(epsilon), widths),
            Self::L2 { factor, epsilon } => QkNorm {
                query: None,
                key: None,
                factor: Some(Initializer::Constant { value: factor }.init([n_heads], device)),
                epsilon,
            },
        }
    }
}

/// The module that [`QkNormConfig`] describes: `factor` for `L2`, `query` and `key` for the others.
///
/// It is a struct, not an enum, so that the names of its parameters in a file are `query.gamma`, `key.gamma` and `factor`.
///
/// # Source
///
/// The variants of [`QkNormConfig`] name their sources.
#[derive(Module, Debug)]
pub struct QkNorm {
    /// Norm of the queries, `[d_head]`, or across heads `[n_heads · d_head]`.
    pub query: Option<Norm>,
    /// Norm of the keys, `[d_head]`, or across heads `[n_kv_heads · d_head]`. Absent where the keys are
    /// [another layer's](crate::BlockConfig::shared_key_value), which has normalised them.
    pub key: Option<Norm>,
    /// Factor on the normalised queries: `[n_heads]`.
    pub factor: Option<Param<Tensor<1>>>,
    epsilon: f64,
}

impl QkNorm {
    /// `[batch, heads, len, d_head]` to the same shape.
    pub(super) fn query(&self, x: Tensor<4>) -> Tensor<4> {
        let x = self.normalised(self.query.as_ref(), x);
        match &self.factor {
            Some(factor) => {
                let factor = floats(factor).cast(x.dtype());
                x * factor.unsqueeze_dims::<4>(&[0, 2, 3])
            }
            None => x,
        }
    }

    /// As [`query`](Self::query), for keys.
    pub(super) fn key(&self, x: Tensor<4>) -> Tensor<4> {
        self.normalised(self.key.as_ref(), x)
    }

    fn normalised(&self, norm: Option<&Norm>, x: Tensor<4>) -> Tensor<4> {
        let Some(norm) = norm else {
            return unit(x, self.epsilon);
        };
        let [_, _, _, d_head] = x.dims();
        let [width] = norm.gamma.dims();
        if width == d_head {
            return norm.forward(x);
        }
        // Across heads: neighbouring numbers of gamma belong to one head.
        let gamma = norm.factor(wide(x.dtype()));
        let gamma = gamma.reshape([1, width / d_head, 1, d_head]);
        rms_norm(x, &[3, 1], self.epsilon, gamma)
    }
}

/// `x / max(|x|, epsilon)`, row by row.
fn unit(x: Tensor<4>, epsilon: f64) -> Tensor<4> {
    let dtype = x.dtype();
    // In f16, the square of 256 is infinite, and that of 1e-4 is zero.
    let least = match wide(dtype) {
        DType::F64 => f64::MIN_POSITIVE,
        _ => f32::MIN_POSITIVE.into(),
    };
    let x = x.cast(wide(dtype));
    // The bound is under the root, whose gradient at zero is not finite. It must not be zero itself.
    let bound = (epsilon * epsilon).max(least);
    let squares = x.clone().square().sum_dim(3).clamp_min(bound);
    (x / squares.sqrt()).cast(dtype)
}
