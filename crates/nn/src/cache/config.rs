//! The length, growth and precision of a cache.

use burn_attn_derive::Config;
use serde::{Deserialize, Serialize};

use crate::error::ConfigError;

/// Configuration of a [`KvCache`](super::KvCache).
///
/// No cache can be made with a size of zero, with a `max_len` beyond the rotary table of the module, in 8 bits on a device without 8-bit
/// integers, with `sink_tokens` that leave no room in `max_len`, or with `sink_tokens` for a layer with a window.
#[derive(Config, Debug)]
pub struct KvCacheConfig {
    /// Length of the longest sequence (tokens); with `sink_tokens`, how many tokens are kept.
    pub max_len: usize,
    /// Initial capacity per sequence (tokens), doubled whenever it is full.
    #[config(default = 64)]
    pub initial_capacity: usize,
    /// How keys and values are stored.
    #[config(default = "CacheStorage::Float")]
    pub storage: CacheStorage,
    /// How many first tokens of each sequence, attention sinks, a full cache keeps while it drops the oldest of the others: see
    /// [`KvCache`](super::KvCache#sink-tokens). Default: a full cache refuses more tokens.
    pub sink_tokens: Option<usize>,
}

/// How a [`KvCache`](super::KvCache) stores keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum CacheStorage {
    /// In the model's dtype.
    Float,
    /// In 8 bits, with one scale per token and head, in about a quarter of the memory of f32. Each number is then off by at
    /// most 1/254 of the largest in its row, and by the rounding of the model's dtype.
    ///
    /// This shrinks storage, not the working set: for every token, each layer decodes all the numbers it reads,
    /// `batch · n_kv_heads · len_kv · (d_head + d_value_head)` floats, and then frees them. Decoding also takes time.
    ///
    /// The error of a head's output relative to its norm, measured over 512 tokens in heads of width 64: for normally
    /// distributed numbers, 0.8 % on average and 1.5 % at most; if 2 of the 64 channels of keys and values are 10 times as
    /// large, 4.3 % and 24 %. `cargo test --test modules eight_bits -- --nocapture` prints these numbers.
    ///
    /// No gradient passes through it. It needs a backend with 8-bit integers, such as the CPU backends. wgpu, whose shaders have no such type, refuses it.
    Int8,
}

impl KvCacheConfig {
    /// Whether a cache can be built. The error names the field that is zero or too large.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let sizes = [
            ("max_len", self.max_len),
            ("initial_capacity", self.initial_capacity),
        ];
        ConfigError::check_positive("KvCacheConfig", &sizes)?;
        let (sink_tokens, max_len) = (self.sink_tokens.unwrap_or(0), self.max_len);
        ConfigError::check("KvCacheConfig", sink_tokens < max_len, || {
            format!("sink_tokens {sink_tokens} leave no room in max_len {max_len}")
        })
    }
}
