//! Configurations that were saved load, and mean what they meant: `tests/golden/configs` has each with none of the fields of then at its
//! default, those below `first` as they were saved before anything was added, those below `added` with what joined since. `coverage` sees
//! that no field is at its default in all of them.
//!
//! The files stay as they are. A field that joins a configuration is missing in them, and the test says what that means.

use std::{fmt::Debug, fs, path::PathBuf};

use burn::config::Config;
use burn_attn::{
    FeedForwardActivation, KvCacheConfig, NormConfig, NormPlacement, ProjectionBias, QkNormConfig,
    SelfAttentionConfig,
    positions::{PositionEncoding, RotaryLayout, RotaryScaling, SinusoidalLayout},
};
use burn_attn_models::language_model::AbsolutePosition;
use burn_attn_tests::golden;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::values;

fn path(name: &str) -> PathBuf {
    golden::path("configs").join(format!("{name}.json"))
}

/// What a file holds is `expected`, also after it was written once more. `Debug` prints every field, so equal text is equal
/// configuration.
pub fn loads<C: Serialize + DeserializeOwned + Debug>(name: &str, expected: &C) -> Value {
    let written = serde_json::to_string_pretty(expected).expect("written");
    let text = fs::read_to_string(path(name));
    let text = text.unwrap_or_else(|_| panic!("golden/configs/{name}.json should be\n{written}"));
    for text in [&text, &written] {
        let loaded: C =
            serde_json::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(format!("{loaded:?}"), format!("{expected:?}"), "{name}");
    }
    serde_json::from_str(&text).expect("JSON")
}

/// `config` is in the file of its name, and a field too much is refused.
fn check<C: Config>(name: &str, config: C) {
    let saved = loads(name, &config);
    let mut typo = saved.as_object().expect("an object").clone();
    typo.insert("d_modell".into(), json!(15));
    let error = serde_json::from_value::<C>(typo.into()).expect_err("there is no such field");
    let sentence = error.to_string();
    assert!(
        sentence.starts_with("unknown field `d_modell`, expected "),
        "{name}: {sentence}"
    );
}

#[test]
fn attention() {
    check("HeadsConfig", values::heads());
    check("ProjectionBias", values::projection_bias());
    check("SelfAttentionConfig", values::self_attention());
    check("CrossAttentionConfig", values::cross_attention());
    check("MultiHeadAttentionConfig", values::multi_head_attention());
    check("KvCacheConfig", values::kv_cache());
}

#[test]
fn qk_norms() {
    loads(
        "QkNormConfig",
        &vec![values::rms_qk_norm(), values::l2_qk_norm()],
    );
    loads(
        "added/QkNormConfig",
        &QkNormConfig::RmsAcrossHeads { epsilon: 0.0625 },
    );
}

#[test]
fn positions() {
    check("RotaryConfig", values::rotary());
    check("AlibiConfig", values::alibi());
    check("RelativeBiasConfig", values::relative());
    check("added/SinusoidalConfig", values::sinusoidal());
    check("added/YarnScaling", values::yarn());
    loads(
        "added/RotaryScaling",
        &vec![
            RotaryScaling::Yarn(values::yarn()),
            RotaryScaling::Llama3 {
                factor: 8.0,
                low_freq_factor: 1.25,
                high_freq_factor: 3.5,
                original_max_len: 509,
            },
            RotaryScaling::LongRope {
                factors: vec![1.0, 2.5],
                attention_factor: 1.25,
            },
        ],
    );
    loads(
        "added/SinusoidalLayout",
        &vec![
            SinusoidalLayout::Interleaved,
            SinusoidalLayout::HalfSplit,
            SinusoidalLayout::Tensor2Tensor,
        ],
    );
    check("LearnedConfig", values::learned());
    loads(
        "PositionEncoding",
        &vec![
            PositionEncoding::None,
            PositionEncoding::Rotary(values::rotary()),
            PositionEncoding::Alibi(values::alibi()),
            PositionEncoding::Relative(values::relative()),
        ],
    );
    // It can also be a file of its own.
    let alone = PositionEncoding::load_binary(br#""None""#).expect("an encoding");
    assert_eq!(alone, PositionEncoding::None);
    loads(
        "RotaryScaling",
        &vec![
            RotaryScaling::None,
            RotaryScaling::Linear { factor: 4.0 },
            RotaryScaling::Ntk { factor: 8.0 },
            RotaryScaling::yarn(16.0, 509),
        ],
    );
    loads(
        "RotaryLayout",
        &vec![RotaryLayout::HalfSplit, RotaryLayout::Interleaved],
    );
}

#[test]
fn blocks() {
    check("BlockConfig", values::block());
    check("FeedForwardConfig", values::feed_forward());
    check("added/TiedEmbeddingConfig", values::tied_embedding());
    check("MixtureOfExpertsConfig", values::mixture_of_experts());
    check("added/ExpertsConfig", values::experts());
    loads("NormConfig", &values::norms());
    let with_offset = values::norms().into_iter();
    let with_offset: Vec<_> = with_offset.map(NormConfig::with_unit_offset).collect();
    loads("added/NormConfig", &with_offset);
    loads(
        "NormPlacement",
        &vec![
            NormPlacement::Pre,
            NormPlacement::Post,
            NormPlacement::Sandwich,
        ],
    );
    loads(
        "FeedForwardActivation",
        &vec![
            FeedForwardActivation::Relu,
            FeedForwardActivation::Gelu,
            FeedForwardActivation::GeluTanh,
            FeedForwardActivation::SwiGlu,
            FeedForwardActivation::GeGlu,
            FeedForwardActivation::GeGluTanh,
        ],
    );
    loads(
        "added/FeedForwardActivation",
        &vec![
            FeedForwardActivation::QuickGelu,
            FeedForwardActivation::Silu,
            FeedForwardActivation::ReluSquared,
            FeedForwardActivation::ReGlu,
            FeedForwardActivation::ClampedSwiGlu,
        ],
    );
}

#[test]
fn stack_configs_round_trip() {
    loads("added/TransformerStackConfig", &values::stack());
    check("TransformerConfig", values::transformer());
}

#[test]
fn model_configs_round_trip() {
    check("Seq2SeqConfig", values::seq2seq());
    check("LanguageModelConfig", values::language_model());
    loads(
        "AbsolutePosition",
        &vec![
            AbsolutePosition::None,
            AbsolutePosition::Sinusoidal,
            AbsolutePosition::Learned,
        ],
    );
}

#[test]
fn misspelt_fields_have_their_sentence() {
    let folder = tempfile::tempdir().expect("a folder to write to");
    let path = folder.path().join("config.json");
    fs::write(
        &path,
        r#"{ "max_len": 31, "initial_capacity": 5, "quantized": true }"#,
    )
    .expect("written");
    let error = KvCacheConfig::load(&path).expect_err("there is no such field");
    assert_eq!(
        error.to_string(),
        "Config error => Invalid format: unknown field `quantized`, expected one of `max_len`, `initial_capacity`, `storage`, `sink_tokens` \
         at line 1 column 51"
    );
    fs::write(
        &path,
        r#"{ "LayerNorm": { "epsilon": 0.125, "bais": true } }"#,
    )
    .expect("written");
    let error = NormConfig::load(&path).expect_err("there is no such field");
    assert_eq!(
        error.to_string(),
        "Config error => Invalid format: unknown field `bais`, expected one of `epsilon`, `bias`, `unit_offset` at line 1 column 41"
    );
}

#[test]
fn builders_take_a_value_or_an_option() {
    let config = || SelfAttentionConfig::new(12, 3).with_causal(true);
    let values = config()
        .with_window(4)
        .with_d_head(5)
        .with_scale(0.5)
        .with_bias(false);
    let options = config()
        .with_window(Some(4))
        .with_d_head(Some(5))
        .with_scale(Some(0.5))
        .with_bias(ProjectionBias::none());
    assert_eq!(values.to_string(), options.to_string());
    let unset = values
        .with_window(None)
        .with_d_head(None)
        .with_scale(None)
        .with_bias(true);
    assert_eq!(unset.to_string(), config().to_string());
    assert_ne!(unset.to_string(), options.to_string());
}
