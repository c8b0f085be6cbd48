//! What the metadata of a GGUF file say of a model, as `config.json` of `transformers` would say it.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::weights::{Weights, gguf_metadata};

/// The architectures whose tensors have a table.
const ARCHITECTURES: [&str; 4] = ["bert", "llama", "qwen2", "qwen3"];

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

/// The fields of a file. What its architecture has beyond [`FIELDS`] keeps its name, under which the family refuses it, unless it changes nothing.
pub(super) fn fields(path: &Path) -> Result<Map<String, Value>, String> {
    let metadata = gguf_metadata(path)?;
    let weights = Weights::open(path).map_err(|error| error.to_string())?;
    let architecture = match metadata.get("general.architecture") {
        Some(Value::String(architecture)) => architecture.as_str(),
        _ => return Err("its metadata do not say the general.architecture".into()),
    };
    if !ARCHITECTURES.contains(&architecture) {
        return Err(format!(
            "its architecture is {architecture:?}, and GGUF files are read of {}",
            ARCHITECTURES.join(", ")
        ));
    }
    let of_architecture = |key: &str| metadata.get(&format!("{architecture}.{key}"));
    let number = |key: &str| of_architecture(key).and_then(Value::as_u64);
    let d_head = number("attention.key_length")
        .or_else(|| number("embedding_length")?.checked_div(number("attention.head_count")?));
    let is_bert = architecture == "bert";
    let changes_nothing = |key: &str, value: &Value| match key {
        "attention.causal" => *value == json!(!is_bert),
        "attention.value_length" | "rope.dimension_count" => value.as_u64() == d_head,
        // States are the same however they are pooled; sentence encoders read it themselves.
        "pooling_type" => is_bert,
        "rope.scaling.type" => *value == json!("none"),
        _ => false,
    };

    let mut fields = Map::new();
    fields.insert("model_type".into(), json!(architecture));
    for (key, value) in &metadata {
        let Some(short) = key
            .strip_prefix(architecture)
            .and_then(|key| key.strip_prefix('.'))
        else {
            continue;
        };
        if changes_nothing(short, value) {
            continue;
        }
        let field = FIELDS.iter().find(|(known, _)| *known == short);
        let field = field.map_or(key.as_str(), |(_, field)| field);
        fields.insert(field.into(), value.clone());
    }
    // What only the tensors say.
    let rows = |wanted: &str| {
        let found = weights.tensors().find(|(name, _)| *name == wanted);
        found.and_then(|(_, shape)| shape.first().copied())
    };
    if let Some(rows) = rows("token_embd.weight") {
        fields.entry("vocab_size").or_insert(json!(rows));
    }
    if let Some(factors) = weights.numbers("rope_freqs.weight")? {
        fields.insert("rope_freqs".into(), json!(factors));
    }
    if is_bert {
        if let Some(rows) = rows("token_types.weight") {
            fields.insert("type_vocab_size".into(), json!(rows));
        }
    } else {
        let is_tied = rows("output.weight").is_none();
        fields.insert("tie_word_embeddings".into(), json!(is_tied));
    }
    if architecture == "llama" && rows("blk.0.attn_q.bias").is_some() {
        fields.insert("attention_bias".into(), json!(true));
    }
    Ok(fields)
}
