//! GPT-2 (Radford et al., "Language models are unsupervised multitask learners", 2019): a [`LanguageModel`] with learned positions.
//!
//! ```text
//! x      = tokens[token] + positions[position]
//! x      = x + attention(norm(x));  x = x + feed_forward(norm(x))          layer by layer
//! logits = norm(x) · tokensᵀ
//! ```

use std::path::Path;

use burn_attn::{BlockConfig, FeedForwardActivation, NormConfig, NormPlacement};
use serde_json::json;

use super::loading::loaded;
use crate::{
    language_model::{AbsolutePosition, LanguageModel, LanguageModelConfig},
    pretrained::{ConfigFile, LoadOptions, PretrainedError, Result},
    weights::Table,
};

/// [`LanguageModel::from_pretrained`] for a `model_type` of `gpt2`. Sequences have at most `n_positions` tokens.
///
/// Dropout in training differs: here `resid_pdrop` also applies to the embedded tokens, and `embd_pdrop` is not read.
///
/// # Source
///
/// PyTorch equivalent: `GPT2LMHeadModel` of Hugging Face's `transformers`.
///
/// # Example
///
/// A small model, saved as `transformers` would save it, and loaded again.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_attn::{BlockConfig, FeedForwardActivation, NormPlacement};
/// use burn_attn_models::{
///     generate::{GenerateOptions, generate},
///     gpt2,
///     language_model::{AbsolutePosition, LanguageModelConfig},
///     weights::save,
/// };
///
/// let device = Device::default();
/// let block = BlockConfig::new()
///     .with_norm_placement(NormPlacement::Pre)
///     .with_activation(FeedForwardActivation::GeluTanh);
/// let original = LanguageModelConfig::new(100)
///     .with_d_model(32)
///     .with_n_heads(4)
///     .with_d_ff(128)
///     .with_max_len(64)
///     .with_block(block)
///     .with_absolute_position(AbsolutePosition::Learned)
///     .with_scaled_embedding(false)
///     .init(&device);
/// let folder = std::env::temp_dir().join("burn-attn-gpt2");
/// std::fs::create_dir_all(&folder)?;
/// save(&gpt2::table(), &original, folder.join("model.safetensors"))?;
/// let config = r#"{"model_type": "gpt2", "vocab_size": 100, "n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 4}"#;
/// std::fs::write(folder.join("config.json"), config)?;
///
/// let model = gpt2::from_pretrained(&folder, &device)?;
/// let outputs = generate(&model, model.start(2), &[vec![5, 6, 7], vec![8]], &GenerateOptions::new(11))?;
/// assert_eq!(outputs[1].tokens.len(), 11);
/// # std::fs::remove_dir_all(folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn from_pretrained(
    source: impl AsRef<Path>,
    options: impl Into<LoadOptions>,
) -> Result<LanguageModel, PretrainedError> {
    let source = source.as_ref();
    let mut file = ConfigFile::read(source, "GPT-2")?;
    let config = config(&mut file)?;
    let names = ["transformer", "wte.weight", "lm_head.weight"];
    loaded((source, file), config, names, |_| table(), &options.into())
}

/// Which parameter of a [`LanguageModel`] is which tensor of `GPT2LMHeadModel`; [`save`](crate::weights::save()) writes them back by it.
pub fn table() -> Table {
    // The `Conv1D` of GPT-2 has the layout of our linear layers.
    let names = ["weight", "bias"];
    let layer = Table::new()
        .norm("self_attention_residual.norm", "ln_1")
        .same_names("self_attention.query_key_value", "attn.c_attn", names)
        .same_names("self_attention.output", "attn.c_proj", names)
        .norm("feed_forward_residual.norm", "ln_2")
        .same_names("feed_forward.linear_inner", "mlp.c_fc", names)
        .same_names("feed_forward.linear_outer", "mlp.c_proj", names)
        .ignore("attn.bias attn.masked_bias");
    Table::new()
        .row("embedding.weight", "transformer.wte.weight")
        .row("learned.table", "transformer.wpe.weight")
        .part("transformer.layers.{layer}", "transformer.h.{layer}", layer)
        .norm("transformer.norm", "transformer.ln_f")
        .tied("lm_head.weight", "transformer.wte.weight")
        // The first checkpoints were saved without the head.
        .rename("wte.*", "transformer.wte.*")
        .rename("wpe.*", "transformer.wpe.*")
        .rename("h.*", "transformer.h.*")
        .rename("ln_f.*", "transformer.ln_f.*")
}

fn config(file: &mut ConfigFile) -> Result<LanguageModelConfig> {
    file.only("model_type", json!("gpt2"))?;
    file.only("scale_attn_weights", json!(true))?;
    let unsupported =
        "scale_attn_by_inverse_layer_idx reorder_and_upcast_attn add_cross_attention use_bfloat16";
    file.only(unsupported, json!(false))?;
    let is_tied = file.flag("tie_word_embeddings", true)?;
    file.check("tie_word_embeddings", is_tied, || "true")?;
    file.only("pruned_heads", json!({}))?;
    // Fields of other heads, of training, and of the tokenizer.
    file.ignore(
        "summary_activation summary_first_dropout summary_proj_to_labels summary_type summary_use_proj \
         embd_pdrop n_special predict_special_tokens",
    );
    let d_model = file.size("n_embd")?;
    let max_len = file.size("n_positions")?;
    file.only("n_ctx", json!(max_len))?;
    let d_ff = file.size_if_any("n_inner")?;
    let d_ff = d_ff.unwrap_or(d_model.saturating_mul(4));
    let epsilon = file.number("layer_norm_epsilon", 1e-5)?;
    let activation = file.activation("activation_function", FeedForwardActivation::GeluTanh)?;
    let block = BlockConfig::new()
        .with_norm(NormConfig::layer_norm().with_epsilon(epsilon))
        .with_norm_placement(NormPlacement::Pre)
        .with_activation(activation)
        .with_dropout(file.number("resid_pdrop", 0.1)?)
        .with_attention_dropout(file.number("attn_pdrop", 0.1)?)
        .with_feed_forward_dropout(0.0);
    Ok(LanguageModelConfig::new(file.size("vocab_size")?)
        .with_d_model(d_model)
        .with_n_heads(file.size("n_head")?)
        .with_n_layers(file.layers("n_layer")?)
        .with_d_ff(d_ff)
        .with_max_len(max_len)
        .with_block(block)
        .with_absolute_position(AbsolutePosition::Learned)
        .with_scaled_embedding(false))
}
