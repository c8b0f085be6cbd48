//! Where queries stand among their keys, for every position encoding, mask and module.

mod alone;
mod offsets;

use burn::tensor::{Device, Tensor};
use burn_attn::{
    AttentionMask, CausalAlignment, CrossAttention, CrossAttentionConfig, MultiHeadAttention,
    MultiHeadAttentionConfig,
    positions::{AlibiConfig, PositionEncoding, RelativeBiasConfig, RotaryConfig},
};
use burn_attn_tests::{
    compare::assert_close,
    devices,
    numbers::{filled, tensor},
};

const WIDTH: usize = 13;
const TOLERANCE: f64 = 1e-5;
/// Keys of the sequences, in a batch of `LEN` keys.
const LENGTHS: [usize; 3] = [7, 4, 2];
const LEN: usize = 7;

type Mask = fn() -> AttentionMask;

const MASKS: [(&str, Mask); 6] = [
    ("no mask", AttentionMask::none),
    ("causal", AttentionMask::causal),
    ("top-left", || {
        AttentionMask::causal_aligned(CausalAlignment::TopLeft)
    }),
    ("bottom-right", || {
        AttentionMask::causal_aligned(CausalAlignment::BottomRight)
    }),
    ("window", || AttentionMask::window(1, 2)),
    ("causal window", || {
        AttentionMask::causal().and(AttentionMask::window(2, 0))
    }),
];

fn encodings() -> [(&'static str, PositionEncoding); 4] {
    let relative = RelativeBiasConfig::new()
        .with_buckets(11)
        .with_max_distance(13);
    [
        ("no positions", PositionEncoding::None),
        (
            "rotary",
            PositionEncoding::Rotary(RotaryConfig::new().with_max_len(19)),
        ),
        (
            "ALiBi",
            PositionEncoding::Alibi(AlibiConfig::new().with_learnable(true)),
        ),
        ("relative", PositionEncoding::Relative(relative)),
    ]
}

/// Every encoding with every mask, on every CPU backend.
fn cases() -> Vec<(String, PositionEncoding, Mask, Device)> {
    let mut cases = Vec::new();
    for (backend, device) in devices::cpu() {
        for (encoding_name, encoding) in encodings() {
            for (mask_name, mask) in MASKS {
                let name = format!("{encoding_name}, {mask_name}, {backend}");
                cases.push((name, encoding.clone(), mask, device.clone()));
            }
        }
    }
    cases
}

fn multi_head(position: PositionEncoding, device: &Device) -> MultiHeadAttention {
    let config = MultiHeadAttentionConfig::new(WIDTH, 3).with_dropout(0.0);
    filled(
        config.with_d_head(6).with_position(position).init(device),
        1,
    )
}

fn cross(position: PositionEncoding, device: &Device) -> CrossAttention {
    let config = CrossAttentionConfig::new(WIDTH, 3).with_dropout(0.0);
    filled(
        config.with_d_head(6).with_position(position).init(device),
        1,
    )
}

/// A batch of `len` tokens per sequence; no padding is zeros.
fn batch(len: usize, seed: u64, device: &Device) -> Tensor<3> {
    tensor([LENGTHS.len(), len, WIDTH], seed, device)
}

/// The first `len` tokens of sequence `b`.
fn one(x: &Tensor<3>, b: usize, len: usize) -> Tensor<3> {
    x.clone().narrow(0, b, 1).narrow(1, 0, len)
}

fn close<const D: usize>(what: &str, actual: Tensor<D>, expected: Tensor<D>) {
    assert_close(what, &actual.into_data(), &expected.into_data(), TOLERANCE);
}

fn key_lengths(device: &Device) -> AttentionMask {
    AttentionMask::key_lengths(Tensor::from_data(
        LENGTHS.map(|length| length as i32),
        device,
    ))
}
