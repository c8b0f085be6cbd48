//! No field of a configuration is at its default in all of the files that configurations are read from.

use std::{any::type_name, fs};

use burn::config::Config;
use burn_attn::{
    BlockConfig, CrossAttentionConfig, ExpertsConfig, FeedForwardConfig, GatedDeltaRuleConfig,
    HeadsConfig, KvCacheConfig, LatentAttentionConfig, MixtureOfExpertsConfig,
    MultiHeadAttentionConfig, ProjectionBias, SelfAttentionConfig, TiedEmbeddingConfig,
    TransformerConfig, TransformerLayerConfig, TransformerStackConfig,
    positions::{
        AlibiConfig, LearnedConfig, RelativeBiasConfig, RotaryConfig, SinusoidalConfig, YarnScaling,
    },
};
use burn_attn_models::{
    bert::BertConfig, language_model::LanguageModelConfig, seq2seq::Seq2SeqConfig,
};
use burn_attn_tests::golden;
use serde_json::Value;

/// What the files of a configuration hold: those of its name, and those whose names go on with `With`.
fn files(name: &str) -> Vec<Value> {
    let mut files = Vec::new();
    for folder in ["configs", "configs/added"] {
        for entry in fs::read_dir(golden::path(folder)).expect("a folder") {
            let path = entry.expect("a file").path();
            let stem = path.file_stem().expect("a name").to_string_lossy();
            let more = stem.strip_prefix(name);
            if more.is_some_and(|more| more.is_empty() || more.starts_with("With")) {
                let text = fs::read_to_string(&path).expect("read");
                files.push(serde_json::from_str(&text).expect("JSON"));
            }
        }
    }
    files
}

/// The fields that no file has with another value than this one. What is in a field that is a configuration itself is looked at there.
fn at_their_defaults<C: Config>(default: C) -> Vec<String> {
    let name = type_name::<C>().rsplit("::").next().expect("a name");
    let files = files(name);
    assert!(!files.is_empty(), "no file has a {name}");
    let default = serde_json::to_value(default).expect("written");
    let fields = default.as_object().expect("an object").iter();
    let fields = fields.filter(|(field, default)| {
        let mut values = files.iter().filter_map(|file| file.get(field));
        !values.any(|value| value != *default)
    });
    fields.map(|(field, _)| format!("{name}.{field}")).collect()
}

#[test]
fn every_field_is_in_a_file_and_not_at_its_default() {
    let found = [
        at_their_defaults(HeadsConfig::new()),
        at_their_defaults(ProjectionBias::all()),
        at_their_defaults(SelfAttentionConfig::new(1, 1)),
        at_their_defaults(CrossAttentionConfig::new(1, 1)),
        at_their_defaults(MultiHeadAttentionConfig::new(1, 1)),
        at_their_defaults(KvCacheConfig::new(1)),
        at_their_defaults(LatentAttentionConfig::new(1, 1, 1, 1, 1, 1)),
        at_their_defaults(GatedDeltaRuleConfig::new(1, 1, 1, 1, 1)),
        at_their_defaults(RotaryConfig::new()),
        at_their_defaults(YarnScaling::new(1.0, 1)),
        at_their_defaults(AlibiConfig::new()),
        at_their_defaults(RelativeBiasConfig::new()),
        at_their_defaults(SinusoidalConfig::new(1)),
        at_their_defaults(LearnedConfig::new(1, 1)),
        at_their_defaults(BlockConfig::new()),
        at_their_defaults(FeedForwardConfig::new(1, 1)),
        at_their_defaults(MixtureOfExpertsConfig::new(1, 1, 1, 1)),
        at_their_defaults(ExpertsConfig::new(1, 1)),
        at_their_defaults(TiedEmbeddingConfig::new(1, 1)),
        at_their_defaults(TransformerLayerConfig::new(1, 1, 1)),
        at_their_defaults(TransformerStackConfig::new(1, 1, 1, 1)),
        at_their_defaults(TransformerConfig::new(1, 1, 1, 1, 1)),
        at_their_defaults(BertConfig::new(1)),
        at_their_defaults(LanguageModelConfig::new(1)),
        at_their_defaults(Seq2SeqConfig::new(1)),
    ];
    assert_eq!(found.concat(), Vec::<String>::new());
}
