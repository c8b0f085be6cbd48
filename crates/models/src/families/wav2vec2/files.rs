//! The files of `transformers`: what they say of a wav2vec 2.0, and what its tensors are called.

use std::path::Path;

use burn_attn::{BlockConfig, FeedForwardActivation, NormConfig, NormPlacement};
use serde_json::json;

use super::{FeatureLayerConfig, Wav2Vec2, Wav2Vec2Config};
use crate::{
    families::files::{ModelFiles, SPEECH_TRAINING, block, feed_forward, self_attention},
    pretrained::{ConfigFile, LoadOptions, PretrainedError, Result},
    weights::Table,
};

/// The most convolutions accepted in a file: published models have 7.
const MOST_LAYERS: usize = 100;

/// Loads a model with a `model_type` of `wav2vec2` from a folder or a [name on the Hub](crate::pretrained). It has a head if the weights have one for CTC.
///
/// What pretraining has beside the model, its quantizer and projections, is left out. Adapters (`add_adapter`; `adapter_attn_dim`, as in MMS) and heads for
/// classes are refused. Training differs: no layer is skipped, no frame masked at random, and dropout is of the layers and the frames
/// before them alone.
///
/// Files, errors and cost are those of [`LanguageModel::from_pretrained`](crate::language_model::LanguageModel::from_pretrained).
///
/// # Source
///
/// PyTorch equivalents: `Wav2Vec2ForCTC` and `Wav2Vec2Model` of Hugging Face's `transformers`.
pub fn from_pretrained(
    source: impl AsRef<Path>,
    options: impl Into<LoadOptions>,
) -> Result<Wav2Vec2, PretrainedError> {
    let valid = |(config, _): &(Wav2Vec2Config, _)| config.validate();
    let ((mut config, head), files) =
        ModelFiles::open(source, options, "wav2vec 2.0", read, valid)?;
    if files.weights.has("lm_head.weight") {
        let (vocab_size, blank) = head?;
        config = config.with_vocab_size(vocab_size).with_blank(blank);
    }
    files.load(config.validate(), |device| config.init(device), &table())
}

/// Which parameter of a [`Wav2Vec2`] is which tensor of `Wav2Vec2ForCTC`; [`save`](crate::weights::save()) writes them back by it.
pub fn table() -> Table {
    let projections = ["q_proj", "k_proj", "v_proj", "out_proj"];
    let feed_forward = feed_forward(["intermediate_dense", "output_dense"]);
    let layer = Table::new()
        .part("self_attention", "attention", self_attention(projections))
        .norm("self_attention_residual.norm", "layer_norm")
        .part("feed_forward", "feed_forward", feed_forward)
        .norm("feed_forward_residual.norm", "final_layer_norm");
    // A layer has one of the norms at most, and the model one of the two before and after its layers.
    let features = Table::new()
        .convolution("convolution", "conv")
        .norm("group_norm", "layer_norm")
        .norm("norm", "layer_norm");
    let positions = Table::new()
        .row("magnitude", "parametrizations.weight.original0")
        .row("direction", "parametrizations.weight.original1")
        .row("bias", "bias");
    let model = Table::new()
        .layers("features", "feature_extractor.conv_layers", features)
        .norm("feature_norm", "feature_projection.layer_norm")
        .linear("projection", "feature_projection.projection")
        .part("positions", "encoder.pos_conv_embed.conv", positions)
        .norm("norm", "encoder.layer_norm")
        .norm("encoder.norm", "encoder.layer_norm")
        .layers("encoder.layers", "encoder.layers", layer)
        // For training.
        .ignore("masked_spec_embed");
    Table::new()
        .part("", "wav2vec2", model)
        .linear("head", "lm_head")
        // For pretraining.
        .ignore("quantizer.* project_hid.* project_q.*")
        // A model without a head.
        .may_lack("wav2vec2", "feature_extractor.* feature_projection.*")
        .may_lack("wav2vec2", "encoder.* masked_spec_embed")
        // The names before PyTorch 2.
        .rename("*.weight_g", "*.parametrizations.weight.original0")
        .rename("*.weight_v", "*.parametrizations.weight.original1")
}

/// Vocabulary and blank of a head, or why there cannot be one.
type Head = Result<(usize, usize), PretrainedError>;

/// The model without a head, and what its head would be.
fn read(file: &mut ConfigFile) -> Result<(Wav2Vec2Config, Head)> {
    file.only("model_type", json!("wav2vec2"))?;
    file.only("add_adapter", json!(false))?;
    file.only("adapter_attn_dim", json!(null))?;
    // Fields of training, pretraining, other heads, and adapters.
    file.ignore(SPEECH_TRAINING);
    file.ignore(
        "feat_proj_dropout final_dropout layerdrop mask_time_min_space mask_time_other mask_time_selection no_mask_time_overlap \
         mask_channel_prob mask_channel_length mask_channel_min_space mask_channel_other mask_channel_selection no_mask_channel_overlap \
         ctc_loss_reduction ctc_zero_infinity freeze_feat_extract_train feat_extract_dropout feat_quantizer_dropout \
         num_codevectors_per_group num_codevector_groups contrastive_logits_temperature num_negatives codevector_dim \
         proj_codevector_dim diversity_loss_weight hidden_dropout_prob tdnn_dim tdnn_kernel tdnn_dilation xvector_output_dim \
         adapter_kernel_size adapter_stride num_adapter_layers output_hidden_size tie_word_embeddings",
    );
    let activation = file.activation("feat_extract_activation", FeedForwardActivation::Gelu)?;
    let by_frame = file.choice("feat_extract_norm", &[("group", false), ("layer", true)])?;
    let norm = NormConfig::layer_norm().with_epsilon(file.number("layer_norm_eps", 1e-5)?);
    let mut base = BlockConfig::new().with_norm(norm);
    if file.flag("do_stable_layer_norm", false)? {
        base = base.with_norm_placement(NormPlacement::Pre);
    }
    let block = block(file, base, ["hidden_act", "hidden_dropout"])?;
    let config = Wav2Vec2Config::new()
        .with_features(features(file)?)
        .with_feature_layer_norm(by_frame)
        .with_feature_bias(file.flag("conv_bias", false)?)
        .with_feature_activation(activation)
        .with_d_model(file.size_or("hidden_size", 768)?)
        .with_n_heads(file.size_or("num_attention_heads", 12)?)
        .with_n_layers(file.layers_or("num_hidden_layers", 12)?)
        .with_d_ff(file.size_or("intermediate_size", 3072)?)
        .with_position_kernel(file.size_or("num_conv_pos_embeddings", 128)?)
        .with_position_groups(file.size_or("num_conv_pos_embedding_groups", 16)?)
        .with_block(block);
    let vocab_size = file.size_or("vocab_size", 32);
    let blank = file.size_or("pad_token_id", 0);
    let head = vocab_size.and_then(|vocab_size| Ok((vocab_size, blank?)));
    Ok((config, head))
}

fn features(file: &mut ConfigFile) -> Result<Vec<FeatureLayerConfig>> {
    let base = Wav2Vec2Config::base_features();
    let of_base = |size: fn(&FeatureLayerConfig) -> usize| base.iter().map(size).collect();
    let channels = file.sizes_or("conv_dim", of_base(|layer| layer.n_channels))?;
    let count = channels.len();
    let most = || format!("at most {MOST_LAYERS} numbers");
    file.check("conv_dim", count <= MOST_LAYERS, most)?;
    let as_many = ("conv_dim", count);
    let kernels = file.sizes_as("conv_kernel", of_base(|layer| layer.kernel_size), as_many)?;
    let strides = file.sizes_as("conv_stride", of_base(|layer| layer.stride), as_many)?;
    file.only("num_feat_extract_layers", json!(count))?;
    let layer = |at: usize| FeatureLayerConfig::new(channels[at], kernels[at], strides[at]);
    Ok((0..count).map(layer).collect())
}
