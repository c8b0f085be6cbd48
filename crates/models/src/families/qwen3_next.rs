//! Qwen3-Next: a [`LanguageModel`] whose layers are of two kinds, most with a [`GatedDeltaRule`], the others with gated self-attention on
//! rotary positions of a part of each head ("Gated delta networks", arXiv:2412.06464; "Gated attention for large language models",
//! arXiv:2505.06708).
//!
//! ```text
//! x      = tokens[token]
//! x      = x + delta_rule(norm(x));  x = x + experts(norm(x))                 in three layers of four
//! x      = x + attention(norm(x));   x = x + experts(norm(x))                 in the fourth
//! logits = head(norm(x))
//! ```

use std::path::Path;

use burn::tensor::Device;
use burn_attn::{
    ConfigError, EitherMixer, ExpertsConfig, FeedForwardActivation, GatedDeltaRule,
    GatedDeltaRuleConfig, HeadsConfig, NormConfig, ProjectionBias, QkNormConfig, SelfAttention,
    SelfAttentionConfig, positions::RotaryConfig,
};
use serde_json::json;

use super::{
    decoder::{check_layer_types, decoder},
    files::{GATED, experts_and_shared, gated_feed_forward},
    llama::{
        experts::{check_count, sparse},
        rotary,
        table::around_layers,
    },
    loading::loaded_with,
};
use crate::{
    language_model::{LanguageModel, LanguageModelConfig},
    pretrained::{ConfigFile, LoadOptions, PretrainedError, Result},
    weights::{Table, same},
};

/// What mixes the tokens of a layer: self-attention, or the gated delta rule.
pub type Mixer = EitherMixer<SelfAttention, GatedDeltaRule>;

/// Loads a model from a folder that Hugging Face's `transformers` saved, or from a [name on the Hub](crate::pretrained), with a `model_type` of
/// `qwen3_next`, such as `"Qwen/Qwen3-Next-80B-A3B-Instruct"`. The state of its layers with the delta rule does not grow with the text.
///
/// Sequences have at most `max_position_embeddings` tokens, or the length that the scaling of the rotary positions reaches, if that is more. The
/// parameters that predict several tokens at once (`mtp`) are left out. A bare model (`Qwen3NextModel`) is loaded too; it has states and
/// [no logits](LanguageModel::has_logits), and is saved by `table(source)?.bare("model")`.
///
/// # Errors and cost
///
/// As [`LanguageModel::from_pretrained`].
///
/// # Source
///
/// PyTorch equivalent: `Qwen3NextForCausalLM` of Hugging Face's `transformers`.
pub fn from_pretrained(
    source: impl AsRef<Path>,
    options: impl Into<LoadOptions>,
) -> Result<LanguageModel<Mixer>, PretrainedError> {
    let source = source.as_ref();
    let mut file = ConfigFile::read(source, "Qwen3-Next")?;
    let model = config(&mut file)?;
    loaded_with(
        (source, file),
        (model.config.clone(), model.validate()),
        ["model", "embed_tokens.weight", "lm_head.weight"],
        |config| model.table(config.tied),
        |config, device| config.init_with(|layer| model.mixer(layer, device), device),
        &options.into(),
    )
}

/// Which parameter of [`from_pretrained`]'s model is which tensor of its files, to [write](crate::weights::save()) a file that `transformers`
/// reads. Fails as [`from_pretrained`], but only `config.json` is read.
pub fn table(source: impl AsRef<Path>) -> Result<Table, PretrainedError> {
    let mut file = ConfigFile::read(source.as_ref(), "Qwen3-Next")?;
    let model = config(&mut file)?;
    file.finish()?;
    Ok(model.table(model.config.tied))
}

/// What a `config.json` describes.
struct Model {
    config: LanguageModelConfig,
    attention: SelfAttentionConfig,
    delta_rule: GatedDeltaRuleConfig,
    /// Whether each layer has attention.
    has_attention: Vec<bool>,
}

impl Model {
    fn validate(&self) -> Result<(), ConfigError> {
        self.attention.validate().and(self.delta_rule.validate())
    }

    fn mixer(&self, layer: usize, device: &Device) -> Mixer {
        match self.has_attention[layer] {
            true => EitherMixer::first(self.attention.init(device)),
            false => EitherMixer::second(self.delta_rule.init(device)),
        }
    }

    fn table(&self, is_tied: bool) -> Table {
        let SelfAttentionConfig { n_heads, heads, .. } = &self.attention;
        let n_kv_heads = heads.n_kv_heads.unwrap_or(*n_heads);
        let projections = same(["q_proj", "k_proj", "v_proj"])
            .shares([2 * n_heads, n_kv_heads, n_kv_heads])
            .gated(heads.d_head.unwrap_or(0));
        let attention = Table::new()
            .linear(["query_key_value", "gate"], projections)
            .norm("heads.qk_norm.query", "q_norm")
            .norm("heads.qk_norm.key", "k_norm")
            .linear("output", "o_proj");
        let delta = &self.delta_rule;
        let per_key = delta.n_value_heads.checked_div(delta.n_key_heads);
        let per_key = per_key.unwrap_or(0);
        let [key, value] = [delta.d_key_head, per_key.saturating_mul(delta.d_value_head)];
        let delta_rule = Table::new()
            .linear(
                "query_key_value_gate",
                // The query, key, values and gates of each key head are together.
                same("in_proj_qkvz").interleaved([key, key, value, value]),
            )
            .linear("beta_decay", same("in_proj_ba").interleaved([per_key; 2]))
            .row("convolution", "conv1d.weight")
            .row("log_decay_rate", "A_log")
            .row("decay_bias", "dt_bias")
            .norm("norm", "norm")
            .linear("output", "out_proj");
        let experts = experts_and_shared("shared_expert");
        let layer = Table::new()
            .norm("self_attention_residual.norm", "input_layernorm")
            .part("self_attention.first", "self_attn", attention)
            .part("self_attention.second", "linear_attn", delta_rule)
            .norm("feed_forward_residual.norm", "post_attention_layernorm")
            .part("feed_forward", "", gated_feed_forward("mlp", GATED))
            .part("mixture_of_experts", "", experts)
            .linear("mixture_of_experts.shared_gate", "mlp.shared_expert_gate");
        around_layers(layer, is_tied).ignore("mtp.*")
    }
}

fn config(file: &mut ConfigFile) -> Result<Model> {
    file.only("model_type", json!("qwen3_next"))?;
    let activations = [("silu", FeedForwardActivation::SwiGlu)];
    let activation = file.choice("hidden_act", &activations)?;
    file.only("use_sliding_window", json!(false))?;
    // For training.
    file.ignore("router_aux_loss_coef output_router_logits");
    let [d_model, n_heads] = [file.size("hidden_size")?, file.size("num_attention_heads")?];
    let d_head = file.size("head_dim")?;
    let max_len = file.positions("max_position_embeddings")?;
    let rotary = rotary(file, d_head, max_len)?;
    let epsilon = file.number("rms_norm_eps", 1e-6)?;
    let norm = NormConfig::rms_norm()
        .with_epsilon(epsilon)
        .with_unit_offset();
    let heads = HeadsConfig::new()
        .with_n_kv_heads(Some(file.size("num_key_value_heads")?))
        .with_d_head(Some(d_head))
        .with_gate(true)
        .with_qk_norm(Some(QkNormConfig::PerHead(norm.clone())));
    let bias = ProjectionBias::from(file.flag("attention_bias", false)?);
    let dropout = file.number_if_any("attention_dropout")?.unwrap_or(0.0);
    let attention = SelfAttentionConfig::new(d_model, n_heads)
        // The stack has the rotary table for all layers.
        .with_heads(heads.clone())
        .with_causal(true)
        .with_bias(bias)
        .with_dropout(dropout);
    let delta_rule = GatedDeltaRuleConfig::new(
        d_model,
        file.size("linear_num_key_heads")?,
        file.size("linear_num_value_heads")?,
        file.size("linear_key_head_dim")?,
        file.size("linear_value_head_dim")?,
    );
    let delta_rule = delta_rule
        .with_kernel_len(file.size_or("linear_conv_kernel_dim", 4)?)
        .with_norm_epsilon(epsilon);
    let n_layers = file.layers("num_hidden_layers")?;
    let has_attention = has_attention(file, n_layers)?;
    let experts = experts(file, n_layers)?;
    let sparse = sparse(file, n_layers)?.into_iter();
    let experts = sparse.map(|is_sparse| experts.clone().filter(|_| is_sparse));
    let experts = experts.collect();
    let config = decoder(file, (norm, activation), (heads, rotary), experts)?;
    Ok(Model {
        config,
        attention,
        delta_rule,
        has_attention,
    })
}

/// The rotary positions of heads of width `d_head`, of which a part is rotated: a field that version 5 of transformers has moved.
fn rotary(file: &mut ConfigFile, d_head: usize, max_len: usize) -> Result<RotaryConfig> {
    const FIELD: &str = "partial_rotary_factor";
    let outside = file.number_if_any(FIELD)?;
    let is_newer = file.has("rope_parameters");
    let parameters = rotary::parameters(file)?;
    let mut parameters = parameters.unwrap_or_else(|| file.empty());
    let inside = parameters.number_if_any(FIELD)?;
    // Version 4 of transformers does not look for it inside.
    let rotated = match is_newer {
        true => inside.or(outside),
        false => outside,
    };
    let rotated = rotated.unwrap_or(0.25);
    for (file, said) in [(&*file, outside), (&parameters, inside)] {
        let agrees = said.is_none_or(|said| said == rotated);
        file.check(FIELD, agrees, || rotated.to_string())?;
    }
    // Rounded down, as there.
    let rotary_dim = (d_head as f64 * rotated) as usize;
    let rotary = RotaryConfig::new()
        .with_max_len(max_len)
        .with_rotary_dim(rotary_dim);
    rotary::read(file, rotary)
}

/// Which layers have attention. The published files have no list of layer types.
fn has_attention(file: &mut ConfigFile, n_layers: usize) -> Result<Vec<bool>> {
    let kinds = [("linear_attention", false), ("full_attention", true)];
    let interval = file.size_or("full_attention_interval", 4)?;
    file.check("full_attention_interval", interval > 0, || "1 or more")?;
    let named = file.choices("layer_types", &kinds)?;
    let every = (1..=n_layers).map(|layer| layer.is_multiple_of(interval));
    let has_attention = named.unwrap_or_else(|| every.collect());
    check_layer_types(file, &has_attention, n_layers)?;
    Ok(has_attention)
}

/// The experts, unless their number is 0.
fn experts(file: &mut ConfigFile, n_layers: usize) -> Result<Option<ExpertsConfig>> {
    let n_experts = file.size("num_experts")?;
    check_count(file, "num_experts", n_experts, n_layers)?;
    let experts = ExpertsConfig::new(n_experts, file.size("num_experts_per_tok")?)
        .with_d_ff(file.size("moe_intermediate_size")?)
        .with_norm_topk_prob(file.flag("norm_topk_prob", true)?)
        .with_d_shared(file.size("shared_expert_intermediate_size")?)
        .with_shared_gate(true);
    Ok((n_experts > 0).then_some(experts))
}

#[cfg(test)]
mod tests;
