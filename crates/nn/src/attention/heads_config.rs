//! The configuration of the heads, common to all attention modules.

use burn::{
    nn::{DropoutConfig, Initializer},
    tensor::Device,
};
use burn_attn_derive::Config;

use super::{
    heads::{Heads, Parameters, Sizes},
    qk_norm::QkNormConfig,
};
use crate::{error::ConfigError, positions::PositionEncoding};

/// Configuration of the heads of an attention module, apart from their number. Every module and stack has the same choices.
///
/// The configurations of the modules have these fields as `heads`, and a method for each of them:
///
/// ```
/// use burn_attn::{MultiHeadAttentionConfig, QkNormConfig};
///
/// let config = MultiHeadAttentionConfig::new(64, 8)
///     .with_n_kv_heads(2)
///     .with_qk_norm(QkNormConfig::rms())
///     .with_softcap(50.0);
/// assert_eq!(config.heads.n_kv_heads, Some(2));
/// ```
#[derive(Config, Debug)]
pub struct HeadsConfig {
    /// Number of key and value heads, each shared by `n_heads / n_kv_heads` query heads. Default: `n_heads`. 1 is
    /// multi-query attention (arXiv:1911.02150), anything in between grouped-query attention (arXiv:2305.13245).
    pub n_kv_heads: Option<usize>,
    /// Width of a query or key head. Default: `d_model / n_heads`.
    pub d_head: Option<usize>,
    /// Width of a value head. Default: `d_head`.
    pub d_value_head: Option<usize>,
    /// Factor on the dot products. Default: `1 / √d_head`, or 1 if `qk_norm` is [`L2`](QkNormConfig::L2).
    pub scale: Option<f64>,
    /// Bounds the scores: `softcap · tanh(score / softcap)` (Gemma 2, arXiv:2408.00118). Default: no bound.
    pub softcap: Option<f64>,
    /// How queries and keys are normalised. Default: not at all.
    pub qk_norm: Option<QkNormConfig>,
    /// Whether each query head learns a score that joins every softmax and has no value, so that a position may attend to
    /// nothing (gpt-oss, arXiv:2508.10925). It starts at 0.
    #[config(default = false)]
    pub sinks: bool,
    /// The position encoding of queries and keys. Default: none.
    #[config(default = "PositionEncoding::None")]
    pub position: PositionEncoding,
}

impl Default for HeadsConfig {
    fn default() -> Self {
        Self::new()
    }
}

impl HeadsConfig {
    /// This configuration with the direction filled in.
    pub(crate) fn directed(&self, causal: bool) -> Self {
        let heads = self.clone();
        let position = heads.position.clone().directed(causal);
        heads.with_position(position)
    }

    /// Whether `n_heads` such heads can be built in `config`.
    pub(crate) fn validate(
        &self,
        config: &'static str,
        d_model: usize,
        n_heads: usize,
    ) -> Result<(), ConfigError> {
        self.sizes(config, d_model, n_heads).map(|_| ())
    }

    /// The sizes.
    ///
    /// # Errors
    ///
    /// Names the fields of `config`, whose heads these are, and values that contradict each other.
    pub(super) fn sizes(
        &self,
        config: &'static str,
        d_model: usize,
        n_heads: usize,
    ) -> Result<Sizes, ConfigError> {
        ConfigError::check_positive(config, &[("d_model", d_model), ("n_heads", n_heads)])?;
        let n_kv_heads = self.n_kv_heads.unwrap_or(n_heads);
        ConfigError::check_positive(config, &[("n_kv_heads", n_kv_heads)])?;
        if !n_heads.is_multiple_of(n_kv_heads) {
            let reason = format!("n_heads {n_heads} is not divisible by n_kv_heads {n_kv_heads}");
            return Err(ConfigError::new(config, reason));
        }
        if self.d_head.is_none() {
            ConfigError::check_heads(config, d_model, n_heads)?;
        }
        let d_head = self.d_head.unwrap_or(d_model / n_heads);
        let d_value_head = self.d_value_head.unwrap_or(d_head);
        let widths = [("d_head", d_head), ("d_value_head", d_value_head)];
        ConfigError::check_positive(config, &widths)?;
        for (field, number) in [("scale", self.scale), ("softcap", self.softcap)] {
            if let Some(number) = number {
                ConfigError::check_finite_positive(config, &[(field, number)])?;
            }
        }
        if let Some(qk_norm) = &self.qk_norm {
            qk_norm.validate(config)?;
        }
        self.position.validate(config, n_heads, d_head)?;
        Ok(Sizes {
            n_heads,
            n_kv_heads,
            d_head,
            d_value_head,
        })
    }

    /// The heads, with their parameters.
    pub(super) fn init(&self, sizes: Sizes, dropout: f64, device: &Device) -> Heads {
        let Sizes {
            n_heads, d_head, ..
        } = sizes;
        let [query, key, _] = sizes.widths();
        let qk_norm = self.qk_norm.as_ref();
        let parameters = Parameters {
            qk_norm: qk_norm.map(|norm| norm.init(n_heads, d_head, [query, key], device)),
            sinks: self
                .sinks
                .then(|| Initializer::Zeros.init([n_heads], device)),
            position: self.position.init(n_heads, d_head, device),
        };
        let dropout = DropoutConfig::new(dropout).init();
        Heads::new(sizes, parameters, [self.scale, self.softcap], dropout)
    }
}

/// Builder methods for the fields of [`HeadsConfig`] on a configuration that has one as `heads`.
macro_rules! heads_builders {
    ($config:ident) => {
        impl $config {
            /// Number of key and value heads; see [`HeadsConfig::n_kv_heads`](crate::HeadsConfig::n_kv_heads).
            pub fn with_n_kv_heads(mut self, n_kv_heads: impl Into<Option<usize>>) -> Self {
                self.heads.n_kv_heads = n_kv_heads.into();
                self
            }

            /// Width of a query or key head, where it is not `d_model / n_heads`.
            pub fn with_d_head(mut self, d_head: impl Into<Option<usize>>) -> Self {
                self.heads.d_head = d_head.into();
                self
            }

            /// Width of a value head, where it is not `d_head`.
            pub fn with_d_value_head(mut self, d_value_head: impl Into<Option<usize>>) -> Self {
                self.heads.d_value_head = d_value_head.into();
                self
            }

            /// Factor on the dot products, where it is not `1 / √d_head`.
            pub fn with_scale(mut self, scale: impl Into<Option<f64>>) -> Self {
                self.heads.scale = scale.into();
                self
            }

            /// Bounds the scores; see [`HeadsConfig::softcap`](crate::HeadsConfig::softcap).
            pub fn with_softcap(mut self, softcap: impl Into<Option<f64>>) -> Self {
                self.heads.softcap = softcap.into();
                self
            }

            /// How queries and keys are normalised.
            pub fn with_qk_norm(mut self, qk_norm: impl Into<Option<crate::QkNormConfig>>) -> Self {
                self.heads.qk_norm = qk_norm.into();
                self
            }

            /// Whether to learn sinks; see [`HeadsConfig::sinks`](crate::HeadsConfig::sinks).
            pub fn with_sinks(mut self, sinks: bool) -> Self {
                self.heads.sinks = sinks;
                self
            }

            /// The position encoding of queries and keys.
            pub fn with_position(mut self, position: crate::positions::PositionEncoding) -> Self {
                self.heads.position = position;
                self
            }
        }
    };
}
pub(crate) use heads_builders;
