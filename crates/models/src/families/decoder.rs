//! What the configurations of decoder-only families share.

use burn_attn::{
    BlockConfig, ExpertsConfig, FeedForwardActivation, HeadsConfig, LayerPattern, NormConfig,
    NormPlacement,
    positions::{PositionEncoding, RotaryConfig},
};

use crate::{
    language_model::LanguageModelConfig,
    pretrained::{ConfigFile, Result},
};

/// The sizes of a model, in the fields that most families have, and whether its head is the embedding.
pub(super) fn sizes(file: &mut ConfigFile, is_tied: bool) -> Result<LanguageModelConfig> {
    Ok(LanguageModelConfig::new(file.size("vocab_size")?)
        .with_d_model(file.size("hidden_size")?)
        .with_n_heads(file.size("num_attention_heads")?)
        .with_n_layers(file.layers("num_hidden_layers")?)
        .with_d_ff(file.size("intermediate_size")?)
        .with_scaled_embedding(false)
        .with_tied(file.flag("tie_word_embeddings", is_tied)?))
}

/// A model of layers with norms before their sublayers and no biases, whose mixers are made apart: a layer has these experts, or a feed-forward network.
pub(super) fn decoder(
    file: &mut ConfigFile,
    (norm, activation): (NormConfig, FeedForwardActivation),
    (heads, rotary): (HeadsConfig, RotaryConfig),
    experts: Vec<Option<ExpertsConfig>>,
) -> Result<LanguageModelConfig> {
    let max_len = rotary.max_len;
    let block = BlockConfig::new()
        .with_norm(norm)
        .with_norm_placement(NormPlacement::Pre)
        .with_activation(activation)
        .with_bias(false)
        .with_dropout(0.0)
        .with_heads(heads)
        .with_position(PositionEncoding::Rotary(rotary));
    let layers = experts.into_iter();
    let layers = layers.map(|experts| block.clone().with_experts(experts));
    let layers = LayerPattern::Cycle(layers.collect());
    Ok(sizes(file, false)?
        .with_max_len(max_len)
        .with_block(block)
        .with_pattern(layers))
}

/// Refuses `layer_types` that are more or fewer than the layers.
pub(super) fn check_layer_types(file: &ConfigFile, types: &[bool], n_layers: usize) -> Result<()> {
    file.check("layer_types", types.len() == n_layers, || {
        format!("as many types as num_hidden_layers, {n_layers}")
    })
}

/// A configuration with the fields of these JSON objects.
#[cfg(test)]
pub(super) fn file_of(objects: &[&str]) -> ConfigFile {
    let objects = objects.iter();
    let objects = objects.map(|text| serde_json::from_str(text).expect("an object"));
    let fields = objects.flat_map(serde_json::Map::into_iter).collect();
    ConfigFile::of_model("config.json".into(), "a family", fields)
}
