//! The language model: with a cache and without, for every position, mask and grouping.

mod logits;
mod misuse;
mod parts;
mod stack;
mod tokens;
mod training;

use burn::tensor::{Device, Int, Tensor, TensorData};
use burn_attn::{
    BlockConfig, FeedForwardActivation, KvCacheConfig, NormPlacement,
    positions::{
        AlibiConfig, PositionEncoding, RelativeBiasConfig, RotaryConfig, RotaryLayout,
        RotaryScaling, YarnScaling,
    },
};
use burn_attn_models::language_model::{AbsolutePosition, LanguageModel, LanguageModelConfig};
use burn_attn_tests::{
    numbers::{filled, uniform},
    parameters,
};

const VOCABULARY: usize = 23;
const D_MODEL: usize = 24;
const HEADS: usize = 6;
const MAX_LEN: usize = 13;
/// So small that it leaves tokens behind in every test.
const WINDOW: usize = 4;

/// Prompts of one length and of three.
const PROMPTS: [[usize; 3]; 2] = [[5, 5, 5], [2, 7, 5]];

/// A position, a mask and a grouping.
struct Case {
    name: String,
    /// What stands before the mask and the grouping in the name.
    position: &'static str,
    config: LanguageModelConfig,
}

/// How the heads know the order, or what is added to the embedded tokens.
fn positions() -> Vec<(&'static str, PositionEncoding, AbsolutePosition)> {
    let rotary = || RotaryConfig::new().with_max_len(MAX_LEN);
    let yarn = YarnScaling::new(4.0, 11)
        .with_beta_fast(2.0)
        .with_beta_slow(0.1);
    let of_heads = [
        ("none", PositionEncoding::None),
        ("rotary", PositionEncoding::Rotary(rotary())),
        (
            "rotary, interleaved, partial",
            PositionEncoding::Rotary(
                rotary()
                    .with_layout(RotaryLayout::Interleaved)
                    .with_rotary_dim(4),
            ),
        ),
        (
            "rotary, yarn",
            PositionEncoding::Rotary(rotary().with_scaling(RotaryScaling::Yarn(yarn))),
        ),
        ("alibi", PositionEncoding::alibi()),
        (
            "alibi, learnable",
            PositionEncoding::Alibi(AlibiConfig::new().with_learnable(true)),
        ),
        (
            "relative",
            PositionEncoding::Relative(
                RelativeBiasConfig::new()
                    .with_buckets(7)
                    .with_max_distance(11)
                    .with_bidirectional(false),
            ),
        ),
    ];
    let absolute = [
        ("sinusoidal", AbsolutePosition::Sinusoidal),
        ("learned", AbsolutePosition::Learned),
    ];
    let of_heads = of_heads.map(|(name, heads)| (name, heads, AbsolutePosition::None));
    let absolute = absolute.map(|(name, added)| (name, PositionEncoding::None, added));
    of_heads.into_iter().chain(absolute).collect()
}

/// Every position with every mask and every grouping.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (position, of_heads, added) in positions() {
        for window in [None, Some(WINDOW)] {
            for n_kv_heads in [HEADS, 2, 1] {
                let block = BlockConfig::new()
                    .with_dropout(0.0)
                    .with_norm_placement(NormPlacement::Pre)
                    .with_activation(FeedForwardActivation::Relu)
                    .with_d_head(6)
                    .with_n_kv_heads(n_kv_heads)
                    .with_position(of_heads.clone())
                    .with_window(window);
                cases.push(Case {
                    name: format!("{position}, window {window:?}, {n_kv_heads} groups"),
                    position,
                    config: LanguageModelConfig::new(VOCABULARY)
                        .with_d_model(D_MODEL)
                        .with_n_heads(HEADS)
                        .with_d_ff(29)
                        .with_max_len(MAX_LEN)
                        .with_block(block)
                        .with_absolute_position(added),
                });
            }
        }
    }
    cases
}

/// A model that nobody trained, but that makes up its mind.
fn model(config: &LanguageModelConfig, device: &Device) -> LanguageModel {
    let model = filled(config.init(device), 1);
    // Tied embeddings repeat the input, unless loud sublayers drown it, above all attention, which averages.
    let values = parameters::values(&model);
    parameters::replace(model, |path, _| {
        let loud = [
            ("attention.output.weight", 6.0),
            ("linear_outer.weight", 3.0),
            ("norm.gamma", 3.0),
        ];
        let loud = loud.iter().find(|(end, _)| path.ends_with(end));
        let factor = loud.map_or(1.0, |&(_, factor)| factor);
        let values = values[path].iter::<f32>();
        values.map(|value| value * factor).collect()
    })
}

/// Rows of `MAX_LEN` arbitrary tokens.
fn texts(rows: usize) -> Vec<Vec<u32>> {
    let numbers = uniform(5, rows * MAX_LEN);
    let token = |number: &f32| ((number + 1.0) / 2.0 * VOCABULARY as f32) as u32;
    let rows = numbers.chunks(MAX_LEN);
    rows.map(|row| row.iter().map(token).collect()).collect()
}

/// Rows of one length.
fn batch(rows: &[Vec<u32>], device: &Device) -> Tensor<2, Int> {
    let tokens: Vec<i32> = rows.iter().flatten().map(|&token| token as i32).collect();
    let shape = [rows.len(), tokens.len() / rows.len()];
    Tensor::from_data(TensorData::new(tokens, shape), device)
}

/// Room for few tokens at first, so that it has to grow, and a window moves.
fn small() -> KvCacheConfig {
    KvCacheConfig::new(MAX_LEN).with_initial_capacity(2)
}
