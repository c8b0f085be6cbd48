//! GPT-NeoX (Black et al., "GPT-NeoX-20B", arXiv:2204.06745) and Pythia (Biderman et al., arXiv:2304.01373): a [`LanguageModel`] with
//! rotary positions on a part of each head.
//!
//! ```text
//! x      = tokens[token]
//! x      = x + attention(norm₁(x)) + feed_forward(norm₂(x))               layer by layer, parallel
//! x      = x + attention(norm₁(x));  x = x + feed_forward(norm₂(x))       … or one after the other
//! logits = head(norm(x))
//! ```

use std::path::Path;

use burn_attn::{
    BlockConfig, FeedForwardActivation, NormConfig, NormPlacement, ProjectionBias,
    positions::{PositionEncoding, RotaryConfig, RotaryScaling},
};
use serde_json::{Value, json};

use super::{decoder::sizes, llama::rotary::WITH_TYPE, loading::loaded};
use crate::{
    language_model::{LanguageModel, LanguageModelConfig},
    pretrained::{ConfigFile, LoadOptions, PretrainedError, Result},
    weights::{Table, same, transposed},
};

/// [`LanguageModel::from_pretrained`] for a `model_type` of `gpt_neox`, such as `"EleutherAI/pythia-160m"`. Sequences have at most `max_position_embeddings` tokens, or the length that a
/// linear scaling of the rotary positions reaches, if that is more. Other scalings are refused.
///
/// A bare model (`GPTNeoXModel`, whose tensors have no `gpt_neox.` before their names) is loaded too. If it is not tied, it has states and
/// [no logits](LanguageModel::has_logits), and is saved by `table(d_head).bare("gpt_neox")`.
///
/// # Source
///
/// PyTorch equivalent: `GPTNeoXForCausalLM` of Hugging Face's `transformers`.
pub fn from_pretrained(
    source: impl AsRef<Path>,
    options: impl Into<LoadOptions>,
) -> Result<LanguageModel, PretrainedError> {
    let source = source.as_ref();
    let mut file = ConfigFile::read(source, "GPT-NeoX")?;
    let config = config(&mut file)?;
    // A head width of 0 is refused with the rest of the configuration.
    let table = |config: &LanguageModelConfig| {
        let table = table(config.d_model.checked_div(config.n_heads).unwrap_or(0));
        match config.tied {
            true => table.tied("embed_out.weight", "gpt_neox.embed_in.weight"),
            false => table,
        }
    };
    let names = ["gpt_neox", "embed_in.weight", "embed_out.weight"];
    loaded((source, file), config, names, table, &options.into())
}

/// Which parameter of a [`LanguageModel`] with heads of width `d_head` is which tensor of `GPTNeoXForCausalLM`;
/// [`save`](crate::weights::save()) writes them back by it. A model without a separate head is written without `embed_out.weight`.
pub fn table(d_head: usize) -> Table {
    let layer = Table::new()
        .norm("self_attention_residual.norm", "input_layernorm")
        .linear(
            "self_attention.query_key_value",
            // The query, key and value of each head are together.
            same("attention.query_key_value").interleaved([d_head; 3]),
        )
        .linear("self_attention.output", "attention.dense")
        .norm("feed_forward_residual.norm", "post_attention_layernorm")
        .linear("feed_forward.linear_inner", "mlp.dense_h_to_4h")
        .linear("feed_forward.linear_outer", "mlp.dense_4h_to_h")
        .ignore("attention.bias attention.masked_bias attention.rotary_emb.inv_freq");
    Table::new()
        .row("embedding.weight", "gpt_neox.embed_in.weight")
        .layers("transformer.layers", "gpt_neox.layers", layer)
        .norm("transformer.norm", "gpt_neox.final_layer_norm")
        .row("head.weight", transposed("embed_out.weight"))
        // The name in the module's state.
        .rename("lm_head.weight", "embed_out.weight")
}

fn config(file: &mut ConfigFile) -> Result<LanguageModelConfig> {
    file.only("model_type", json!("gpt_neox"))?;
    file.only("pruned_heads", json!({}))?;
    file.only("use_bfloat16", json!(false))?;
    // Fields of another head, and of a model that is causal either way.
    file.ignore("classifier_dropout is_decoder");
    // In the 20B's file; `transformers` does not read these fields.
    file.ignore("attention_probs_dropout_prob hidden_dropout_prob");
    let d_model = file.size("hidden_size")?;
    let n_heads = file.size("num_attention_heads")?;
    let max_len = file.positions("max_position_embeddings")?;
    let rotary = rotary(file, d_model.checked_div(n_heads).unwrap_or(0), max_len)?;
    let max_len = rotary.max_len;
    let epsilon = file.number("layer_norm_eps", 1e-5)?;
    let parallel = file.flag("use_parallel_residual", true)?;
    let block = BlockConfig::new()
        .with_norm(NormConfig::layer_norm().with_epsilon(epsilon))
        .with_norm_placement(NormPlacement::Pre)
        .with_parallel(parallel)
        .with_separate_norms(parallel)
        .with_activation(file.activation("hidden_act", FeedForwardActivation::Gelu)?)
        .with_projection_bias(ProjectionBias::from(file.flag("attention_bias", true)?))
        .with_position(PositionEncoding::Rotary(rotary))
        .with_dropout(file.number("hidden_dropout", 0.0)?)
        .with_attention_dropout(file.number("attention_dropout", 0.0)?)
        .with_feed_forward_dropout(0.0);
    Ok(sizes(file, false)?.with_max_len(max_len).with_block(block))
}

/// The rotary positions of heads of width `d_head`. Their fields have moved and been renamed over the years. Version 4 of transformers writes the base
/// and the rotated part under two names, and reads only the older ones.
fn rotary(file: &mut ConfigFile, d_head: usize, max_len: usize) -> Result<RotaryConfig> {
    file.ignore("rope_theta partial_rotary_factor");
    let is_older = file.has("rope_scaling");
    let group = match is_older {
        true => {
            file.only("rope_parameters", Value::Null)?;
            "rope_scaling"
        }
        false => "rope_parameters",
    };
    file.flatten(group)?;
    let of_group = |field: &str| format!("{group}.{field}");
    let mut number = |inside: &str, outside: &str, missing: f64| {
        let inside = of_group(inside);
        let number = match is_older {
            true => file.number_of(&[outside, &inside], missing)?,
            false => file.number_of(&[&inside, outside], missing)?,
        };
        // Version 4 does not look for it inside.
        let is_read = !is_older || !file.has(&inside) || file.has(outside) || number == missing;
        match is_read {
            true => Ok(number),
            false => Err(file.unsupported(&inside, missing.to_string())),
        }
    };
    let base = number("rope_theta", "rotary_emb_base", 10_000.0)?;
    let rotated = number("partial_rotary_factor", "rotary_pct", 0.25)?;
    let [kind, older] = ["rope_type", "type"].map(of_group);
    let has_type = file.has(&kind) || file.has(&older);
    file.check(group, has_type || !is_older, || WITH_TYPE)?;
    let scaling = file.kind([&kind, &older], &["default", "linear"])?;
    let (scaling, max_len) = match scaling {
        "linear" => {
            let field = of_group("factor");
            let factor = file.real(&field)?;
            let reached = file.reach(&field, factor, max_len)?;
            (RotaryScaling::Linear { factor }, reached.max(max_len))
        }
        _ => (RotaryScaling::None, max_len),
    };
    // Rounded down, as there.
    let rotary_dim = (d_head as f64 * rotated) as usize;
    Ok(RotaryConfig::new()
        .with_base(base)
        .with_rotary_dim(rotary_dim)
        .with_max_len(max_len)
        .with_scaling(scaling))
}
