//! Positions as a learned bias per distance.

use burn::{
    module::{Module, Param},
    nn::Initializer,
    tensor::{Device, FloatDType, Int, Tensor, TensorData},
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
    /// Number of biases per head.
    #[config(default = 32)]
    pub buckets: usize,
    /// The distance from which on all keys share one bias (tokens).
    #[config(default = 128)]
    pub max_distance: usize,
    /// Whether keys after the query have biases of their own: true in T5's encoder, false in its causal decoder. Default: unless
    /// the module is causal. A module that cannot know it ([`MultiHeadAttention`](crate::MultiHeadAttention), cross-attention, and
    /// this one by itself) takes them to have.
    ///
    /// `Some(true)` in a causal module is as older versions had it: the half of the table for later keys is never read.
    pub bidirectional: Option<bool>,
    /// How the table starts.
    #[config(default = "Initializer::Normal { mean: 0.0, std: 0.02 }")]
    pub initializer: Initializer,
}

impl RelativeBiasConfig {
    /// Whether a module can be built for `n_heads` heads.
    ///
    /// # Errors
    ///
    /// When there are no heads, too few buckets for both directions, or `max_distance` is not beyond the distances that
    /// have a bucket each.
    pub fn validate(&self, n_heads: usize) -> Result<(), ConfigError> {
        let config = "RelativeBiasConfig";
        ConfigError::check_positive(config, &[("n_heads", n_heads)])?;
        self.buckets()
            .validate()
            .map_err(|error| ConfigError::Invalid {
                config,
                reason: error.to_string(),
            })
    }

    /// Builds the module for `n_heads` heads of queries.
    ///
    /// # Panics
    ///
    /// With the sentence of [`validate`](Self::validate).
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

/// Adds a learned number to every score, which depends on the head and on how far the key lies from the query.
///
/// ```text
/// score[i, j] += table[bucket(j − position(i)), h]
/// ```
///
/// Near distances have a bucket each, far ones share theirs, on a logarithmic scale. The last query stands on the last key.
/// T5 has one table for all its layers, and does not scale its scores.
///
/// # Source
///
/// Raffel et al., "Exploring the limits of transfer learning with a unified text-to-text transformer" (arXiv:1910.10683),
/// section 2.1. PyTorch equivalent: `T5Attention.compute_bias` of Hugging Face's `transformers`, whose
/// `relative_attention_bias.weight` is the table.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use burn_attn::{SelfAttentionConfig, SelfAttentionInput, positions::RelativeBiasConfig};
///
/// let device = Device::default();
/// let relative = RelativeBiasConfig::new().init(4, &device);
/// let attention = SelfAttentionConfig::new(32, 4).init(&device);
/// let x = Tensor::random([2, 7, 32], Distribution::Default, &device);
/// let output = attention.forward(SelfAttentionInput::new(x).bias(relative.bias()));
/// assert_eq!(output.dims(), [2, 7, 32]);
/// ```
#[derive(Module, Debug)]
pub struct RelativeBias {
    /// One row a bucket: `[buckets, n_heads]`.
    pub table: Param<Tensor<2>>,
    #[module(skip)]
    buckets: RelativeBuckets,
}

impl RelativeBias {
    /// What is added to the scores.
    ///
    /// # Cost
    ///
    /// Nothing here; in the attention, memory of `n_heads · (len_q + len_kv)` numbers.
    pub fn bias(&self) -> AttentionBias {
        AttentionBias::relative(floats(&self.table), self.buckets)
    }

    /// What a key gets that stands so many tokens after its query, for each of these positions: `[n_heads, positions]` in `dtype`.
    pub(super) fn of_positions(&self, positions: &[isize], dtype: FloatDType) -> Tensor<2> {
        let buckets = positions
            .iter()
            .map(|&position| self.buckets.bucket(position) as i64);
        let buckets = TensorData::new(buckets.collect::<Vec<_>>(), [positions.len()]);
        let buckets = Tensor::<1, Int>::from_data(buckets, &self.table.device());
        let table = floats(&self.table).cast(dtype);
        table.transpose().select(1, buckets)
    }
}
