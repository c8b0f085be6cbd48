//! T5 (Raffel et al., "Exploring the limits of transfer learning with a unified text-to-text transformer", arXiv:1910.10683), T5 1.1 and Flan-T5
//! (arXiv:2210.11416): a [`Seq2Seq`] whose positions are a learned bias per distance, in one table for all layers of a stack.
//!
//! ```text
//! x      = tokens[token]
//! x      = x + attention(norm(x));  x = x + cross_attention(norm(x), memory);  x = x + feed_forward(norm(x))      layer by layer
//! logits = norm(x) · d_model^−0.5 · tokensᵀ        the first T5
//! logits = head(norm(x))                           T5 1.1 and Flan-T5
//! ```
//!
//! Norms are RMS norms, there are no other biases, and scores are not scaled.

use std::path::Path;

use burn_attn::{
    BlockConfig, FeedForwardActivation, HeadsConfig, NormConfig, NormPlacement,
    positions::{PositionEncoding, RelativeBiasConfig},
};
use serde_json::json;

use crate::{
    families::files::{ModelFiles, cross_attention, self_attention},
    language_model::AbsolutePosition,
    pretrained::{ConfigFile, LoadOptions, PretrainedError, Result},
    seq2seq::{Seq2Seq, Seq2SeqConfig},
    weights::{Table, transposed},
};

/// The head's tensor in a model that has its own.
const HEAD: &str = "lm_head.weight";
/// Default cache length.
const MAX_LEN: usize = 512;

/// Loads a model with a `model_type` of `t5` from a folder or a [name on the Hub](crate::pretrained).
///
/// Every output starts with the padding token 0, which is the `decoder_start_token_id` of every published T5, and ends with 1. Sources may
/// have any length. Outputs have at most [`max_len`](Seq2Seq::max_len) tokens, which is `n_positions`, or 512 if the file has none.
/// Training differs in that there is no dropout after the last norms.
///
/// Files, errors and cost are those of [`LanguageModel::from_pretrained`](crate::language_model::LanguageModel::from_pretrained).
///
/// # Source
///
/// PyTorch equivalent: `T5ForConditionalGeneration` of Hugging Face's `transformers`.
///
/// # Example
///
/// ```no_run
/// // Not run: it reads a third of a gigabyte.
/// use burn::tensor::{Device, Tensor};
/// use burn_attn_models::{generate::{GenerateOptions, generate}, t5};
///
/// let device = Device::default();
/// let model = t5::from_pretrained("google/flan-t5-small", &device)?;
/// let source = Tensor::from_data([[5, 6, 7, 1], [8, 9, 1, 0]], &device);
/// let start = model.start(source, &[4, 3]);
/// let outputs = generate(&model, start, &[vec![0], vec![0]], &GenerateOptions::new(11).stop_tokens([1]))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn from_pretrained(
    source: impl AsRef<Path>,
    options: impl Into<LoadOptions>,
) -> Result<Seq2Seq, PretrainedError> {
    let valid = Seq2SeqConfig::validate;
    let (mut config, files) = ModelFiles::open(source, options, "T5", read, valid)?;
    if config.tied && config.output_factor.is_none() {
        config.tied = !files.weights.has(HEAD);
    }
    let block = config.block.as_ref();
    let gated = block.is_some_and(|block| block.activation.is_gated());
    let table = match config.tied {
        true => table(gated).tied(HEAD, "shared.weight"),
        false => table(gated),
    };
    files.load(Ok(()), |device| config.init(device), &table)
}

/// Which parameter of a [`Seq2Seq`] is which tensor of `T5ForConditionalGeneration`; [`save`](crate::weights::save()) writes them back by it.
/// `gated` says whether the feed-forward networks have a gate, as they do from T5 1.1 on. A model without a separate head is written
/// without `lm_head.weight`.
pub fn table(gated: bool) -> Table {
    Table::new()
        .row("embedding.weight", "shared.weight")
        .tied("encoder.embed_tokens.weight", "shared.weight")
        .tied("decoder.embed_tokens.weight", "shared.weight")
        .row("head.weight", transposed(HEAD))
        .part("transformer.encoder", "encoder", stack(gated, false))
        .part("transformer.decoder", "decoder", stack(gated, true))
        // In the first checkpoints, which never used it.
        .ignore("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight")
}

/// The layers of one of the stacks and its last norm.
fn stack(gated: bool, decoder: bool) -> Table {
    let projections = ["q", "k", "v", "o"];
    let self_attention = self_attention(projections);
    let cross_attention = cross_attention(projections);
    let feed_forward = Table::new().linear("linear_outer", "wo");
    let feed_forward = match gated {
        true => feed_forward.linear("linear_inner", ["wi_0", "wi_1"]),
        false => feed_forward.linear("linear_inner", "wi"),
    };
    let mut layer = Table::new()
        .norm("self_attention_residual.norm", "layer.0.layer_norm")
        .part("self_attention", "layer.0.SelfAttention", self_attention);
    if decoder {
        let source = "layer.1.EncDecAttention";
        layer = layer
            .norm("cross_attention_residual.norm", "layer.1.layer_norm")
            .part("cross_attention", source, cross_attention);
    }
    let last = if decoder { "layer.2" } else { "layer.1" };
    let layer = layer
        .norm("feed_forward_residual.norm", &format!("{last}.layer_norm"))
        .part(
            "feed_forward",
            &format!("{last}.DenseReluDense"),
            feed_forward,
        );
    let bias = "block.0.layer.0.SelfAttention.relative_attention_bias.weight";
    Table::new()
        .row("positions.0.relative.table", bias)
        .layers("layers", "block", layer)
        .norm("norm", "final_layer_norm")
}

/// The feed-forward networks by their names in `transformers`, and their activations.
const FEED_FORWARD: [(&str, (&str, FeedForwardActivation)); 8] = {
    use FeedForwardActivation::{GeGluTanh, Gelu, GeluTanh, ReGlu, Relu, Silu, SwiGlu};
    [
        ("relu", ("relu", Relu)),
        ("gelu", ("gelu", Gelu)),
        ("gelu_new", ("gelu_new", GeluTanh)),
        ("silu", ("silu", Silu)),
        // What `transformers` takes for it, as T5 1.1 was trained.
        ("gated-gelu", ("gelu_new", GeGluTanh)),
        ("gated-gelu_new", ("gelu_new", GeGluTanh)),
        ("gated-relu", ("relu", ReGlu)),
        ("gated-silu", ("silu", SwiGlu)),
    ]
};

fn read(file: &mut ConfigFile) -> Result<Seq2SeqConfig> {
    file.only("model_type", json!("t5"))?;
    file.only("is_decoder", json!(false))?;
    // For other heads, and for random initialisation.
    file.ignore("classifier_dropout initializer_factor");
    let (function, activation) = file.choice("feed_forward_proj", &FEED_FORWARD)?;
    file.only("is_gated_act", json!(activation.is_gated()))?;
    file.only("dense_act_fn", json!(function))?;

    let relative = RelativeBiasConfig::new()
        .with_buckets(file.size_or("relative_attention_num_buckets", 32)?)
        .with_max_distance(file.size_or("relative_attention_max_distance", 128)?);
    let heads = HeadsConfig::new()
        .with_d_head(file.size("d_kv")?)
        .with_scale(1.0)
        .with_position(PositionEncoding::Relative(relative));
    let dropout = file.number("dropout_rate", 0.1)?;
    let epsilon = file.number("layer_norm_epsilon", 1e-6)?;
    let block = BlockConfig::new()
        .with_norm(NormConfig::rms_norm().with_epsilon(epsilon))
        .with_norm_placement(NormPlacement::Pre)
        .with_activation(activation)
        .with_bias(false)
        .with_dropout(dropout)
        .with_heads(heads);
    let d_model = file.size("d_model")?;
    let n_layers = file.layers("num_layers")?;
    // Since version 5, transformers always writes `tie_word_embeddings` as true. `scale_decoder_outputs` then has its former value, and
    // the model has its own head if the weights have one.
    let tied = file.flag("tie_word_embeddings", true)?;
    let scaled = file.flag("scale_decoder_outputs", tied)?;
    let supported = || "false, as tie_word_embeddings";
    file.check("scale_decoder_outputs", tied || !scaled, supported)?;
    Ok(Seq2SeqConfig::new(file.size("vocab_size")?)
        .with_d_model(d_model)
        .with_n_heads(file.size("num_heads")?)
        .with_n_encoder_layers(n_layers)
        .with_n_decoder_layers(match file.has("num_decoder_layers") {
            true => file.layers("num_decoder_layers")?,
            false => n_layers,
        })
        .with_d_ff(file.size("d_ff")?)
        .with_dropout(dropout)
        .with_max_len(file.size_if_any("n_positions")?.unwrap_or(MAX_LEN))
        .with_block(block)
        .with_absolute_position(AbsolutePosition::None)
        .with_scaled_embedding(false)
        .with_tied(tied)
        .with_output_factor(scaled.then(|| (d_model as f64).powf(-0.5))))
}
