//! DeepSeek-V2 (arXiv:2405.04434): a [`LanguageModel`] with [`LatentAttention`] and, behind the first layers, experts in groups.
//!
//! ```text
//! x      = tokens[token]
//! x      = x + latent_attention(norm(x));  x = x + feed_forward(norm(x))      in the first layers
//! x      = x + latent_attention(norm(x));  x = x + experts(norm(x))           in the others
//! logits = head(norm(x))
//! ```

use std::path::Path;

use burn_attn::{
    ExpertsConfig, FeedForwardActivation, HeadsConfig, LatentAttention, LatentAttentionConfig,
    NormConfig,
    positions::{PositionEncoding, RotaryConfig, RotaryLayout},
};
use serde_json::json;

use super::{
    decoder::decoder,
    files::{GATED, experts_and_shared, gated_feed_forward},
    llama::{experts::check_count, rotary, table::around_layers},
    loading::loaded_with,
};
use crate::{
    language_model::{LanguageModel, LanguageModelConfig},
    pretrained::{ConfigFile, LoadOptions, PretrainedError, Result},
    weights::Table,
};

/// Loads a model from a folder that Hugging Face's `transformers` saved, or from a [name on the Hub](crate::pretrained), with a `model_type` of
/// `deepseek_v2`, such as `"deepseek-ai/DeepSeek-V2-Lite"`. Its cache holds `kv_lora_rank + qk_rope_head_dim` numbers per token and layer.
///
/// Sequences have at most `max_position_embeddings` tokens, or the length that the scaling of the rotary positions reaches, if that is more. A bare
/// model (`DeepseekV2Model`) is loaded too; it has states and [no logits](LanguageModel::has_logits), and is saved by
/// `table(source)?.bare("model")`.
///
/// # Errors and cost
///
/// As [`LanguageModel::from_pretrained`].
///
/// # Source
///
/// PyTorch equivalent: `DeepseekV2ForCausalLM` of Hugging Face's `transformers`.
pub fn from_pretrained(
    source: impl AsRef<Path>,
    options: impl Into<LoadOptions>,
) -> Result<LanguageModel<LatentAttention>, PretrainedError> {
    let source = source.as_ref();
    let mut file = ConfigFile::read(source, "DeepSeek-V2")?;
    let (config, attention) = config(&mut file)?;
    let has_query_latent = attention.d_query_latent.is_some();
    loaded_with(
        (source, file),
        (config, attention.validate()),
        ["model", "embed_tokens.weight", "lm_head.weight"],
        |config| table_of(config.tied, has_query_latent),
        |config, device| config.init_with(|_| attention.init(device), device),
        &options.into(),
    )
}

/// Which parameter of [`from_pretrained`]'s model is which tensor of its files, to [write](crate::weights::save()) a file that `transformers`
/// reads. Fails as [`from_pretrained`], but only `config.json` is read.
pub fn table(source: impl AsRef<Path>) -> Result<Table, PretrainedError> {
    let mut file = ConfigFile::read(source.as_ref(), "DeepSeek-V2")?;
    let (config, attention) = config(&mut file)?;
    file.finish()?;
    Ok(table_of(config.tied, attention.d_query_latent.is_some()))
}

fn table_of(is_tied: bool, has_query_latent: bool) -> Table {
    let query = match has_query_latent {
        true => Table::new()
            .linear("query_down", "q_a_proj")
            .norm("query_norm", "q_a_layernorm")
            .linear("query", "q_b_proj"),
        false => Table::new().linear("query", "q_proj"),
    };
    let attention = query
        .linear("key_value_down", "kv_a_proj_with_mqa")
        .norm("key_value_norm", "kv_a_layernorm")
        .linear("key_value", "kv_b_proj")
        .linear("output", "o_proj");
    let experts = experts_and_shared("shared_experts");
    let layer = Table::new()
        .norm("self_attention_residual.norm", "input_layernorm")
        .part("self_attention", "self_attn", attention)
        .norm("feed_forward_residual.norm", "post_attention_layernorm")
        .part("feed_forward", "", gated_feed_forward("mlp", GATED))
        .part("mixture_of_experts", "", experts);
    around_layers(layer, is_tied)
}

fn config(file: &mut ConfigFile) -> Result<(LanguageModelConfig, LatentAttentionConfig)> {
    file.only("model_type", json!("deepseek_v2"))?;
    let activations = [("silu", FeedForwardActivation::SwiGlu)];
    let activation = file.choice("hidden_act", &activations)?;
    file.only("mlp_bias", json!(false))?;
    // Fields for training, and for how the model was split among machines.
    file.ignore(
        "aux_loss_alpha seq_aux output_router_logits router_aux_loss_coef pretraining_tp ep_size",
    );
    let [d_model, n_heads] = [file.size("hidden_size")?, file.size("num_attention_heads")?];
    file.only("num_key_value_heads", json!(n_heads))?;
    let d_head = file.size("qk_nope_head_dim")?;
    let d_rotary = file.size("qk_rope_head_dim")?;
    // Widths that follow from others, in newer files.
    file.only("head_dim", json!(d_rotary))?;
    file.only("qk_head_dim", json!(d_head + d_rotary))?;
    let rotary = RotaryConfig::new()
        .with_max_len(file.positions("max_position_embeddings")?)
        .with_layout(RotaryLayout::Interleaved);
    // All of `qk_rope_head_dim` is rotated. The field inside the rotary parameters is checked with these parameters.
    file.only("partial_rotary_factor", json!(1.0))?;
    let rotary = rotary::read(file, rotary)?;
    let dropout = file.number_if_any("attention_dropout")?.unwrap_or(0.0);
    file.needs("q_lora_rank")?;
    let d_latent = file.size("kv_lora_rank")?;
    let d_value_head = file.size("v_head_dim")?;
    let attention =
        LatentAttentionConfig::new(d_model, n_heads, d_latent, d_head, d_rotary, d_value_head)
            .with_d_query_latent(file.size_if_any("q_lora_rank")?)
            .with_scale(scale(file, d_head + d_rotary)?)
            // The stack has the rotary table for all layers.
            .with_position(PositionEncoding::None)
            .with_dropout(dropout)
            .with_bias(file.flag("attention_bias", false)?);
    let n_layers = file.layers("num_hidden_layers")?;
    let experts = experts(file, n_layers)?;
    let n_dense = file.size_or("first_k_dense_replace", 0)?;
    let epsilon = file.number("rms_norm_eps", 1e-6)?;
    let norm = NormConfig::rms_norm().with_epsilon(epsilon);
    let heads = HeadsConfig::new().with_d_head(Some(d_rotary));
    let experts = (0..n_layers).map(|layer| (layer >= n_dense).then(|| experts.clone()));
    let experts = experts.collect();
    let config = decoder(file, (norm, activation), (heads, rotary), experts)?;
    Ok((config, attention))
}

/// Scores are multiplied by what YaRN makes of the temperature, apart from its factor on cosine and sine.
fn scale(file: &mut ConfigFile, d_query: usize) -> Result<f64> {
    let plain = (d_query as f64).powf(-0.5);
    let Some(mut parameters) = rotary::parameters(file)? else {
        return Ok(plain);
    };
    let factor = parameters.number_if_any("factor")?;
    let magnitude = parameters.number_if_any("mscale_all_dim")?;
    let (Some(factor), Some(magnitude)) = (factor, magnitude) else {
        return Ok(plain);
    };
    let magnitude = 0.1 * magnitude * factor.max(1.0).ln() + 1.0;
    Ok(plain * magnitude * magnitude)
}

fn experts(file: &mut ConfigFile, n_layers: usize) -> Result<ExpertsConfig> {
    file.only("moe_layer_freq", json!(1))?;
    file.only("scoring_func", json!("softmax"))?;
    // transformers does not read it, and does not normalise.
    file.only("norm_topk_prob", json!(false))?;
    let n_experts = file.size("n_routed_experts")?;
    check_count(file, "n_routed_experts", n_experts, n_layers)?;
    let d_ff = file.size("moe_intermediate_size")?;
    let methods = [("greedy", false), ("group_limited_greedy", true)];
    let experts = ExpertsConfig::new(n_experts, file.size("num_experts_per_tok")?);
    let experts = match file.choice("topk_method", &methods)? {
        true => experts
            .with_n_groups(file.size("n_group")?)
            .with_top_k_groups(file.size("topk_group")?),
        false => {
            file.ignore("n_group topk_group");
            experts
        }
    };
    Ok(experts
        .with_d_ff(d_ff)
        .with_norm_topk_prob(false)
        .with_router_in_f32(true)
        .with_routed_scale(file.number("routed_scaling_factor", 1.0)?)
        .with_d_shared(d_ff.saturating_mul(file.size_or("n_shared_experts", 2)?)))
}

#[cfg(test)]
mod tests;
