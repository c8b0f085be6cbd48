//! How long a cache may get, how it grows, and in how many bits it keeps its numbers.

use burn_attn_derive::Config;

use crate::error::ConfigError;

/// Configuration of a [`KvCache`](super::KvCache).
#[derive(Config, Debug)]
pub struct KvCacheConfig {
    /// Most tokens a sequence may have (tokens).
    pub max_len: usize,
    /// How many tokens there is room for at first (tokens); it doubles when it is full.
    #[config(default = 64)]
    pub initial_len: usize,
    /// Whether keys and values are kept in 8 bits with one scale per token and head, in about a quarter of the memory of
    /// f32; each number is then off by at most 1/254 of the largest of its row.
    ///
    /// It saves memory that stays, not memory in use: every token makes floats of all codes that its layer reads,
    /// `batch · n_kv_heads · len_kv · (d_head + d_value_head)` numbers, and lets go of them when the layer is done. That also
    /// takes time.
    ///
    /// Measured over 512 tokens in heads of width 64, the error of a head's context as a part of its length: of normal numbers
    /// 0.8 % on average and 1.5 % at most; where 2 of the 64 channels of keys and values are 10 times as large, 4.3 % and 24 %.
    /// `cargo test --test modules eight_bits -- --nocapture` prints it.
    ///
    /// For backends that have 8-bit integers: the CPU backends do. wgpu, whose shaders have none, refuses it.
    #[config(default = false)]
    pub quantized: bool,
}

impl KvCacheConfig {
    /// Whether a cache can be built.
    ///
    /// # Errors
    ///
    /// Names the field that is zero.
    pub fn validate(&self) -> Result<(), ConfigError> {
        ConfigError::check_positive(
            "KvCacheConfig",
            &[("max_len", self.max_len), ("initial_len", self.initial_len)],
        )
    }
}
