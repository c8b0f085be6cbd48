//! The configuration of the heads, common to all attention modules.

use burn::{
    nn::{DropoutConfig, Initializer},
    tensor::Device,
};
use burn_attn_derive::Config;

use super::{
    heads::{Heads, Sizes},
    qk_norm::QkNormConfig,
};
use crate::{error::ConfigError, positions::PositionEncoding};

/// Configuration of the heads of an attention module, apart from their number. Every module but [`LatentAttention`](crate::LatentAttention), and every
/// stack, has the same choices.
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
    /// Whether queries and keys are normalised after their rotation by rotary positions (HunYuan) instead of before it.
    #[config(default = false, missing = false)]
    pub norm_after_rotary: bool,
    /// Whether each query head learns a score that joins every softmax and has no value, so that a position may attend to
    /// nothing (gpt-oss, arXiv:2508.10925). It starts at 0.
    #[config(default = false)]
    pub sinks: bool,
    /// Whether the merged heads are multiplied, before the output projection, by the sigmoid of another projection (Qwen3-Next; "Gated
    /// attention for large language models", arXiv:2505.06708). The gate's projection reads the queries' input without the position
    /// embedding, and has a bias if the queries' projection has one.
    #[config(default = false, missing = false)]
    pub gate: bool,
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

    /// The sizes of `n_heads` such heads in `config`, or an error that names fields of `config` and values that contradict each other.
    pub(crate) fn sizes(
        &self,
        config: &'static str,
        d_model: usize,
        n_heads: usize,
    ) -> Result<Sizes, ConfigError> {
        ConfigError::check_positive(config, &[("d_model", d_model), ("n_heads", n_heads)])?;
        let n_kv_heads = self.n_kv_heads.unwrap_or(n_heads);
        ConfigError::check_positive(config, &[("n_kv_heads", n_kv_heads)])?;
        let (heads, shared) = (("n_heads", n_heads), ("n_kv_heads", n_kv_heads));
        ConfigError::check_divisible(config, heads, shared)?;
        if self.d_head.is_none() {
            ConfigError::check_divisible(config, ("d_model", d_model), heads)?;
        }
        let d_head = self.d_head.unwrap_or(d_model / n_heads);
        let d_value_head = self.d_value_head.unwrap_or(d_head);
        let widths = [("d_head", d_head), ("d_value_head", d_value_head)];
        ConfigError::check_positive(config, &widths)?;
        let numbers = [("scale", self.scale), ("softcap", self.softcap)];
        ConfigError::check_finite_positive(config, &numbers)?;
        if let Some(qk_norm) = &self.qk_norm {
            qk_norm.validate(config)?;
        }
        let has_norm = self.qk_norm.is_some() || !self.norm_after_rotary;
        ConfigError::check(config, has_norm, || {
            "norm_after_rotary is true, but qk_norm is not set: there is no norm".to_owned()
        })?;
        self.position.validate(config, n_heads, d_head)?;
        Ok(Sizes {
            n_heads,
            n_kv_heads,
            d_head,
            d_value_head,
        })
    }

    pub(super) fn init(&self, sizes: Sizes, dropout: f64, device: &Device) -> Heads {
        let (n_heads, d_head) = (sizes.n_heads, sizes.d_head);
        let [query, key, _] = sizes.widths();
        let init_norm = |norm: &QkNormConfig| norm.init(n_heads, d_head, [query, key], device);
        let init_sinks = || Initializer::Zeros.init([n_heads], device);
        let scale_of_norm = self.qk_norm.as_ref().and_then(QkNormConfig::scale);
        Heads {
            sizes,
            scale: self.scale.or(scale_of_norm),
            softcap: self.softcap,
            dropout: DropoutConfig::new(dropout).init(),
            qk_norm: self.qk_norm.as_ref().map(init_norm),
            norm_after_rotary: self.norm_after_rotary,
            sinks: self.sinks.then(init_sinks),
            position: self.position.init(n_heads, d_head, device),
        }
    }
}

/// Builder methods for the fields of [`HeadsConfig`] on a configuration that has one as `heads`.
macro_rules! heads_builders {
    ($config:ident) => {
        heads_builders! { $config:
            with_n_kv_heads(n_kv_heads: impl Into<Option<usize>>),
            with_d_head(d_head: impl Into<Option<usize>>),
            with_d_value_head(d_value_head: impl Into<Option<usize>>),
            with_scale(scale: impl Into<Option<f64>>),
            with_softcap(softcap: impl Into<Option<f64>>),
            with_qk_norm(qk_norm: impl Into<Option<crate::QkNormConfig>>),
            with_norm_after_rotary(norm_after_rotary: bool),
            with_sinks(sinks: bool),
            with_gate(gate: bool),
            with_position(position: crate::positions::PositionEncoding)
        }
    };
    ($config:ident: $($method:ident($field:ident: $kind:ty)),*) => {
        impl $config {$(
            #[doc = concat!("Sets [`HeadsConfig::", stringify!($field), "`](crate::HeadsConfig::", stringify!($field), ").")]
            pub fn $method(mut self, $field: $kind) -> Self {
                self.heads.$field = $field.into();
                self
            }
        )*}
    };
}
pub(crate) use heads_builders;
