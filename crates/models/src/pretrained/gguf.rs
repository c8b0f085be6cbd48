//! What the metadata of a GGUF file say of a model, as `config.json` of `transformers` would say it.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::{PretrainedError, Result, error::MODEL_CONFIG};
use crate::weights::{Format, Reason, Weights, ensure, format, lfs_pointer};

/// The architectures whose tensors have a table.
const ARCHITECTURES: [&str; 4] = ["bert", "llama", "qwen2", "qwen3"];

/// The field with the factors that llama.cpp computes from the parameters of Llama 3.1. No `config.json` has it.
pub(crate) const ROPE_FREQS: &str = "the tensor rope_freqs.weight";
/// The most of these factors; heads have one for every two numbers, and published ones have at most 256 numbers.
const MOST_FACTORS: usize = 1024;

/// The fields of `transformers`, behind the name of the architecture.
const FIELDS: [(&str, &str); 11] = [
    ("attention.head_count", "num_attention_heads"),
    ("attention.head_count_kv", "num_key_value_heads"),
    ("attention.key_length", "head_dim"),
    ("attention.layer_norm_epsilon", "layer_norm_eps"),
    ("attention.layer_norm_rms_epsilon", "rms_norm_eps"),
    ("block_count", "num_hidden_layers"),
    ("context_length", "max_position_embeddings"),
    ("embedding_length", "hidden_size"),
    ("feed_forward_length", "intermediate_size"),
    ("rope.freq_base", "rope_theta"),
    ("vocab_size", "vocab_size"),
];

/// The fields of a file, and its tensors. What its architecture has beyond [`FIELDS`] keeps its name, under which the family refuses it, unless it changes nothing.
pub(super) fn fields(path: &Path) -> Result<(Map<String, Value>, Weights)> {
    read(path).map_err(|reason| PretrainedError::file(path, MODEL_CONFIG, reason))
}

fn read(path: &Path) -> Result<(Map<String, Value>, Weights), Reason> {
    if format(path)? != Format::Gguf {
        let no_gguf = "it is no GGUF file; a model of transformers is named by its folder";
        return Err(lfs_pointer(path).unwrap_or(no_gguf.into()).into());
    }
    let (metadata, weights) = Weights::open_gguf(path)?;
    let Some(Value::String(architecture)) = metadata.get("general.architecture") else {
        return Err("its metadata do not say the general.architecture".into());
    };
    ensure!(
        ARCHITECTURES.contains(&architecture.as_str()),
        "its architecture is {architecture:?}, and GGUF files are read of {}",
        ARCHITECTURES.join(", ")
    );
    let number = |key: &str| metadata.get(&format!("{architecture}.{key}"))?.as_u64();
    let d_head = number("attention.key_length")
        .or_else(|| number("embedding_length")?.checked_div(number("attention.head_count")?));
    let is_bert = architecture == "bert";
    let changes_nothing = |key: &str, value: &Value| match key {
        "attention.causal" => *value == json!(!is_bert),
        "attention.value_length" | "rope.dimension_count" => value.as_u64() == d_head,
        // States are the same however they are pooled; sentence encoders read it themselves.
        "pooling_type" => true,
        "rope.scaling.type" => *value == json!("none"),
        _ => false,
    };

    let mut fields = Map::new();
    fields.insert("model_type".into(), json!(architecture));
    for (key, value) in &metadata {
        let short = key.strip_prefix(architecture.as_str());
        let Some(short) = short.and_then(|key| key.strip_prefix('.')) else {
            continue;
        };
        if !changes_nothing(short, value) {
            let field = FIELDS.iter().find(|(known, _)| *known == short);
            let field = field.map_or(key.as_str(), |(_, field)| field);
            fields.insert(field.into(), value.clone());
        }
    }
    // What only the tensors say.
    let rows = |wanted: &str| {
        let (_, shape) = weights.tensors().find(|(name, _)| *name == wanted)?;
        shape.first().copied()
    };
    if let Some(rows) = rows("token_embd.weight") {
        fields.entry("vocab_size").or_insert(json!(rows));
    }
    if let Some(factors) = weights.numbers("rope_freqs.weight")? {
        ensure!(
            factors.len() <= MOST_FACTORS,
            "its rope_freqs.weight has {} factors, and at most {MOST_FACTORS} are read",
            factors.len()
        );
        fields.insert(ROPE_FREQS.into(), json!(factors));
    }
    if !is_bert {
        let is_tied = !weights.has("output.weight");
        fields.insert("tie_word_embeddings".into(), json!(is_tied));
    } else if let Some(rows) = rows("token_types.weight") {
        fields.insert("type_vocab_size".into(), json!(rows));
    }
    if architecture == "llama" && weights.has("blk.0.attn_q.bias") {
        fields.insert("attention_bias".into(), json!(true));
    }
    Ok((fields, weights))
}
