//! The files of `transformers`: what they say of a Whisper, and what its tensors are called.

use std::path::Path;

use serde_json::json;

use super::{Whisper, WhisperConfig};
use crate::{
    families::files::{EncoderDecoder, ModelFiles, SPEECH_TRAINING, feed_forward},
    pretrained::{ConfigFile, LoadOptions, PretrainedError, Result},
    weights::{Table, ZEROS, transposed},
};

/// Loads a model with a `model_type` of `whisper` from a folder or a [name on the Hub](crate::pretrained).
///
/// [`SpeechRecognizer`](crate::speech::SpeechRecognizer) (feature `speech`) has what turns recordings into text beside the model.
/// Training differs: the positions of the encoder are trained too, and no layer is skipped and no spectrogram masked at random.
///
/// Files, errors and cost are those of [`LanguageModel::from_pretrained`](crate::language_model::LanguageModel::from_pretrained).
///
/// # Source
///
/// PyTorch equivalent: `WhisperForConditionalGeneration` of Hugging Face's `transformers`.
pub fn from_pretrained(
    source: impl AsRef<Path>,
    options: impl Into<LoadOptions>,
) -> Result<Whisper, PretrainedError> {
    let valid = WhisperConfig::validate;
    let (config, files) = ModelFiles::open(source, options, "Whisper", read, valid)?;
    files.load(Ok(()), |device| config.init(device), &table())
}

/// Which parameter of a [`Whisper`] is which tensor of `WhisperForConditionalGeneration`; [`save`](crate::weights::save()) writes them back
/// by it.
pub fn table() -> Table {
    let tokens = "model.decoder.embed_tokens.weight";
    let positions = "model.decoder.embed_positions.weight";
    Table::new()
        .convolution("conv1", "model.encoder.conv1")
        .convolution("conv2", "model.encoder.conv2")
        .row("positions.table", "model.encoder.embed_positions.weight")
        .row("seq2seq.embedding.weight", tokens)
        .row("seq2seq.learned.table", positions)
        .part("seq2seq.transformer.encoder", "model.encoder", stack(false))
        .part("seq2seq.transformer.decoder", "model.decoder", stack(true))
        .tied("proj_out.weight", tokens)
        // A model that was saved without its head.
        .may_lack("model", "encoder.* decoder.*")
}

/// The layers of one of the stacks and its last norm.
fn stack(decoder: bool) -> Table {
    let weights = transposed(["q_proj.weight", "k_proj.weight", "v_proj.weight"]);
    let biases = ["q_proj.bias", ZEROS, "v_proj.bias"];
    let self_attention = Table::new()
        .row("query_key_value.weight", weights)
        .row("query_key_value.bias", biases)
        .linear("output", "out_proj");
    let weights = transposed(["k_proj.weight", "v_proj.weight"]);
    let cross_attention = Table::new()
        .linear("query", "q_proj")
        .row("key_value.weight", weights)
        .row("key_value.bias", [ZEROS, "v_proj.bias"])
        .linear("output", "out_proj");
    let mut layer = Table::new()
        .norm("self_attention_residual.norm", "self_attn_layer_norm")
        .part("self_attention", "self_attn", self_attention)
        .norm("feed_forward_residual.norm", "final_layer_norm")
        .part("feed_forward", "", feed_forward(["fc1", "fc2"]));
    if decoder {
        layer = layer
            .norm("cross_attention_residual.norm", "encoder_attn_layer_norm")
            .part("cross_attention", "encoder_attn", cross_attention);
    }
    Table::new()
        .layers("layers", "layers", layer)
        .norm("norm", "layer_norm")
}

fn read(file: &mut ConfigFile) -> Result<WhisperConfig> {
    file.only("model_type", json!("whisper"))?;
    file.only("scale_embedding", json!(false))?;
    file.only("tie_word_embeddings", json!(true))?;
    // Fields of random initialisation, other heads, training, and generation, which other files describe.
    file.ignore("init_std encoder_layerdrop decoder_layerdrop forced_decoder_ids");
    file.ignore(SPEECH_TRAINING);
    file.only("median_filter_width", json!(7))?;
    file.needs("encoder_attention_heads")?;
    file.needs("encoder_ffn_dim")?;
    let stacks = EncoderDecoder::read(file, 6, 1536, WhisperConfig::base_block())?;
    Ok(WhisperConfig::new(file.size("vocab_size")?)
        .with_n_mels(file.size_or("num_mel_bins", 80)?)
        .with_max_frames(file.size_or("max_source_positions", 1500)?)
        .with_max_len(file.size_or("max_target_positions", 448)?)
        .with_d_model(file.size("d_model")?)
        .with_n_heads(stacks.n_heads)
        .with_n_encoder_layers(stacks.n_encoder_layers)
        .with_n_decoder_layers(stacks.n_decoder_layers)
        .with_d_ff(stacks.d_ff)
        .with_block(stacks.block))
}
