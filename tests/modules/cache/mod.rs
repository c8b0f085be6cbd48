//! Decoding with a cache is decoding without one, only cheaper.

mod eight_bits;
mod errors;
mod few_rows;
mod fork;
mod given_positions;
mod masks;
mod memory;
mod multi_head;
mod positions;
mod sameness;
mod sinks;

use burn::tensor::{Device, Tensor};
use burn_attn::{
    KvCache, KvCacheConfig, QkNormConfig, SelfAttention, SelfAttentionConfig, SelfAttentionInput,
    positions::PositionEncoding,
};
use burn_attn_tests::numbers::filled;

pub const D_MODEL: usize = 30;

/// A causal module for each choice that a cache has to respect.
pub fn modules(device: &Device) -> Vec<(&'static str, SelfAttention)> {
    let config = || SelfAttentionConfig::new(D_MODEL, 6).with_causal(true);
    [
        ("plain", config()),
        ("grouped", config().with_n_kv_heads(2)),
        ("multi-query", config().with_n_kv_heads(1)),
        ("narrow heads", config().with_d_head(3).with_d_value_head(7)),
        ("window", config().with_window(4)),
        (
            "window, grouped",
            config().with_window(5).with_n_kv_heads(3),
        ),
        (
            "softcap, sinks, scale",
            config().with_softcap(2.0).with_sinks(true).with_scale(0.7),
        ),
        (
            "rotary",
            config()
                .with_position(PositionEncoding::rotary())
                .with_d_head(6),
        ),
        (
            "rotary, window, grouped, rms",
            config()
                .with_position(PositionEncoding::rotary())
                .with_d_head(4)
                .with_window(5)
                .with_n_kv_heads(2)
                .with_qk_norm(QkNormConfig::rms()),
        ),
        ("alibi", config().with_position(PositionEncoding::alibi())),
        (
            "alibi, sinks",
            config()
                .with_position(PositionEncoding::alibi())
                .with_sinks(true),
        ),
        (
            "alibi, window",
            config()
                .with_position(PositionEncoding::alibi())
                .with_window(3),
        ),
        (
            "relative, grouped",
            config()
                .with_position(PositionEncoding::relative())
                .with_n_kv_heads(3),
        ),
        (
            "relative, window",
            config()
                .with_position(PositionEncoding::relative())
                .with_window(6),
        ),
        ("rms", config().with_qk_norm(QkNormConfig::rms())),
        (
            "rms across heads",
            config().with_qk_norm(QkNormConfig::rms_across_heads()),
        ),
        ("l2", config().with_qk_norm(QkNormConfig::l2())),
    ]
    .map(|(name, config)| (name, filled(config.init(device), 3)))
    .into()
}

/// Feeds `x` in pieces of these lengths.
pub fn in_pieces(
    module: &SelfAttention,
    cache: &mut KvCache,
    x: &Tensor<3>,
    pieces: &[usize],
) -> Tensor<3> {
    one_by_one(pieces, |first, len| {
        let piece = x.clone().narrow(1, first, len);
        module.forward_cached(SelfAttentionInput::new(piece), cache)
    })
}

/// What `read` makes of pieces of these lengths one after the other, each of its first token and its length.
pub fn one_by_one(pieces: &[usize], mut read: impl FnMut(usize, usize) -> Tensor<3>) -> Tensor<3> {
    let mut end = 0;
    let outputs = pieces.iter().map(|&len| {
        end += len;
        read(end - len, len)
    });
    Tensor::cat(outputs.collect(), 1)
}

/// Room for few tokens at first, so that it has to grow.
pub fn small(max_len: usize) -> KvCacheConfig {
    KvCacheConfig::new(max_len).with_initial_capacity(2)
}
