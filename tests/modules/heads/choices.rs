//! What heads can be told, one thing after the other and together.

use burn_attn::{
    HeadsConfig, QkNormConfig,
    positions::{AlibiConfig, PositionEncoding, RelativeBiasConfig, RotaryConfig, RotaryLayout},
};

/// An epsilon so large that another one would be seen.
fn rms() -> QkNormConfig {
    QkNormConfig::Rms { epsilon: 0.07 }
}

/// A least length that some queries and keys do not reach.
fn l2() -> QkNormConfig {
    QkNormConfig::L2 {
        factor: 10.0,
        epsilon: 1.3,
    }
}

fn rotary(layout: RotaryLayout, rotary_dim: Option<usize>) -> PositionEncoding {
    PositionEncoding::Rotary(
        RotaryConfig::new()
            .with_max_len(23)
            .with_base(31.0)
            .with_layout(layout)
            .with_rotary_dim(rotary_dim),
    )
}

fn alibi(learnable: bool) -> PositionEncoding {
    PositionEncoding::Alibi(AlibiConfig::new().with_learnable(learnable))
}

/// Far buckets are reached by the lengths of the tests.
fn relative(bidirectional: bool) -> PositionEncoding {
    PositionEncoding::Relative(
        RelativeBiasConfig::new()
            .with_buckets(10)
            .with_max_distance(7)
            .with_bidirectional(bidirectional),
    )
}

/// Every option of [`HeadsConfig`], alone and with others.
pub fn choices() -> Vec<(&'static str, HeadsConfig)> {
    use RotaryLayout::{HalfSplit, Interleaved};
    let new = HeadsConfig::new;
    let at = |position| new().with_position(position);
    vec![
        ("plain", new()),
        ("grouped", new().with_n_kv_heads(2)),
        ("multi-query", new().with_n_kv_heads(1)),
        ("d_head", new().with_d_head(5)),
        ("d_value_head", new().with_d_value_head(7)),
        (
            "grouped, both widths",
            new().with_n_kv_heads(3).with_d_head(5).with_d_value_head(2),
        ),
        ("scale", new().with_scale(1.7)),
        ("softcap", new().with_softcap(0.6)),
        ("rms", new().with_qk_norm(rms())),
        ("l2", new().with_qk_norm(l2())),
        (
            "l2, scale, grouped",
            new().with_qk_norm(l2()).with_scale(0.7).with_n_kv_heads(2),
        ),
        ("sinks", new().with_sinks(true)),
        ("rotary", at(rotary(HalfSplit, None))),
        ("rotary, interleaved", at(rotary(Interleaved, None))),
        (
            "rotary of a part, grouped",
            at(rotary(HalfSplit, Some(4)))
                .with_d_head(7)
                .with_n_kv_heads(2),
        ),
        (
            "rotary of a part, interleaved",
            at(rotary(Interleaved, Some(2))),
        ),
        ("alibi", at(alibi(false))),
        ("alibi, grouped", at(alibi(false)).with_n_kv_heads(2)),
        ("learned alibi", at(alibi(true)).with_n_kv_heads(3)),
        ("relative", at(relative(true))),
        ("relative, grouped", at(relative(true)).with_n_kv_heads(3)),
        ("one-sided relative", at(relative(false))),
        (
            "rotary and everything else",
            at(rotary(HalfSplit, None))
                .with_n_kv_heads(2)
                .with_d_head(6)
                .with_d_value_head(5)
                .with_scale(0.9)
                .with_softcap(1.1)
                .with_qk_norm(rms())
                .with_sinks(true),
        ),
        (
            "alibi and everything else",
            at(alibi(true))
                .with_n_kv_heads(3)
                .with_d_head(5)
                .with_d_value_head(7)
                .with_softcap(1.9)
                .with_qk_norm(l2())
                .with_sinks(true),
        ),
    ]
}
