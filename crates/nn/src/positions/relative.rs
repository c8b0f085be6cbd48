//! T5's relative bias: positions as a learned bias per distance.

use burn::{
    module::{Module, Param},
    nn::Initializer,
    tensor::{Device, Tensor},
};
use burn_attn_derive::Config;
use burn_attn_ops::{AttentionBias, RelativeBuckets};

use crate::{
    error::{ConfigError, expect_valid},
    parameter::floats,
};

/// Configuration of [`RelativeBias`].
#[derive(Config, Debug, PartialEq)]
pub struct RelativeBiasConfig {
    /// Number of biases per head. With separate biases for keys after the query, each direction has half of them: the last of an odd number is
    /// never read.
    #[config(default = 32)]
    pub buckets: usize,
    /// The distance beyond which all keys share one bias (tokens).
    #[config(default = 128)]
    pub max_distance: usize,
    /// Whether keys after the query have separate biases: true in T5's encoder, false in its causal decoder. Default: true
    /// unless the module is known to be causal; cross-attention and this module by itself are not.
    ///
    /// With `Some(true)` in a causal module, the half of the table for later keys is never read. Files from when this field was a plain
    /// bool say `true`, its default then, or `false`, and keep that direction; a file without it means `None`.
    pub bidirectional: Option<bool>,
    /// How the table is initialised.
    #[config(default = "Initializer::Normal { mean: 0.0, std: 0.02 }")]
    pub initializer: Initializer,
}

impl RelativeBiasConfig {
    /// Whether a module can be built for `n_heads` heads. It is an error if there are no heads or too few buckets for the directions, or
    /// `max_distance` is among the distances that have a bucket each.
    pub fn validate(&self, n_heads: usize) -> Result<(), ConfigError> {
        let config = "RelativeBiasConfig";
        ConfigError::check_positive(config, &[("n_heads", n_heads)])?;
        self.buckets()
            .validate()
            .map_err(|error| ConfigError::new(config, error.to_string()))
    }

    /// Builds the module for `n_heads` heads of queries, or panics with the sentence of [`validate`](Self::validate).
    pub fn init(&self, n_heads: usize, device: &Device) -> RelativeBias {
        expect_valid(self.validate(n_heads));
        RelativeBias {
            table: self.initializer.init([self.buckets, n_heads], device),
            buckets: self.buckets(),
        }
    }

    fn buckets(&self) -> RelativeBuckets {
        RelativeBuckets {
            buckets: self.buckets,
            max_distance: self.max_distance,
            bidirectional: self.bidirectional.unwrap_or(true),
        }
    }
}

/// T5's relative bias: adds to every score a learned number that depends on the head and on the distance between query and
/// key.
///
/// ```text
/// score[i, j] += table[bucket(j − position(i)), h]
/// ```
///
/// Short distances have a bucket each; long ones share buckets on a logarithmic scale. [`QueryOffset`](super::QueryOffset) says
/// where queries stand. T5 has one table for all its layers, and does not scale its scores.
///
/// # Source
///
/// Raffel et al., "Exploring the limits of transfer learning with a unified text-to-text transformer" (arXiv:1910.10683),
/// section 2.1. PyTorch equivalent: `T5Attention.compute_bias` of Hugging Face's `transformers`, whose
/// `relative_attention_bias.weight` is the table.
///
/// By itself, it is used as [`Alibi`](super::Alibi) is.
#[derive(Module, Debug)]
pub struct RelativeBias {
    /// One row per bucket: `[buckets, n_heads]`.
    pub table: Param<Tensor<2>>,
    #[module(skip)]
    pub(super) buckets: RelativeBuckets,
}

impl RelativeBias {
    /// The bias on the scores. In the attention, it takes memory of `n_heads · (len_q + len_kv)` numbers.
    pub fn bias(&self) -> AttentionBias {
        AttentionBias::relative(floats(&self.table), self.buckets)
    }
}
