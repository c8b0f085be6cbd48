//! The files of `transformers`: what they say of a DETR, and what its tensors are called.

use std::path::Path;

use serde_json::json;

use super::{Detr, DetrConfig};
use crate::{
    families::files::{EncoderDecoder, ModelFiles, cross_attention, feed_forward, self_attention},
    pretrained::{ConfigFile, LoadOptions, PretrainedError, Result},
    resnet::{ResNetNames, backbone},
    weights::Table,
};

/// Loads a model with a `model_type` of `detr` from a folder or a [name on the Hub](crate::pretrained). It has heads if the weights have them.
///
/// The backbone is a ResNet of `transformers`, or one of `timm` from ResNet-18 to ResNet-152. Dilated ones (DC5), learned positions of the image and
/// models for segmentation are refused; so are encoders and decoders with different numbers of heads or feed-forward widths, and `auxiliary_loss`, with which `transformers` normalises the decoder's states between its layers,
/// unlike the paper. Training differs: all convolutions are trained, where `transformers` freezes some.
///
/// Files, errors and cost are those of [`LanguageModel::from_pretrained`](crate::language_model::LanguageModel::from_pretrained).
///
/// # Source
///
/// PyTorch equivalents: `DetrForObjectDetection` and `DetrModel` of Hugging Face's `transformers`.
pub fn from_pretrained(
    source: impl AsRef<Path>,
    options: impl Into<LoadOptions>,
) -> Result<Detr, PretrainedError> {
    let valid = |(config, _): &(DetrConfig, _)| config.validate();
    let ((mut config, names), files) = ModelFiles::open(source, options, "DETR", read, valid)?;
    let logits = files.outputs("class_labels_classifier");
    config.n_classes = logits.map(|logits| logits.saturating_sub(1));
    let table = table(names);
    files.load(config.validate(), |device| config.init(device), &table)
}

/// Which parameter of a [`Detr`] is which tensor of `DetrForObjectDetection` with such a backbone; [`save`](crate::weights::save()) writes them
/// back by it.
pub fn table(backbone: ResNetNames) -> Table {
    let model = Table::new()
        .part("backbone", "backbone.conv_encoder.model", backbone.table())
        .convolution("projection", "input_projection")
        .row("queries", "query_position_embeddings.weight")
        .layers("encoder.layers", "encoder.layers", layer())
        .layers("decoder.layers", "decoder.layers", layer())
        .norm("decoder.norm", "decoder.layernorm");
    Table::new()
        .part("", "model", model)
        .linear("class_head", "class_labels_classifier")
        .linear("box_head.layers.{layer}", "bbox_predictor.layers.{layer}")
        // A model without heads.
        .may_lack("model", "backbone.* input_projection.* encoder.* decoder.*")
        .may_lack("model", "query_position_embeddings.*")
}

/// A layer of either stack: in the encoder, nothing attends to a memory.
fn layer() -> Table {
    let names = ["q_proj", "k_proj", "v_proj", "out_proj"];
    Table::new()
        .part("self_attention", "self_attn", self_attention(names))
        .norm("self_attention_residual.norm", "self_attn_layer_norm")
        .part("cross_attention", "encoder_attn", cross_attention(names))
        .norm("cross_attention_residual.norm", "encoder_attn_layer_norm")
        .part("feed_forward", "", feed_forward(["fc1", "fc2"]))
        .norm("feed_forward_residual.norm", "final_layer_norm")
}

fn read(file: &mut ConfigFile) -> Result<(DetrConfig, ResNetNames)> {
    file.only("model_type", json!("detr"))?;
    file.only("position_embedding_type", json!("sine"))?;
    file.only("auxiliary_loss", json!(false))?;
    // Fields for random initialisation and training, and fields of other models.
    file.ignore(
        "init_std init_xavier_std encoder_layerdrop decoder_layerdrop classifier_dropout class_cost bbox_cost giou_cost \
         mask_loss_coefficient dice_loss_coefficient bbox_loss_coefficient giou_loss_coefficient eos_coefficient \
         max_position_embeddings scale_embedding",
    );
    let (backbone, names) = backbone(file)?;
    let stacks = EncoderDecoder::read(file, 8, 2048, DetrConfig::base_block())?;
    let d_model = file.size_or("d_model", 256)?;
    file.only("hidden_size", json!(d_model))?;
    let config = DetrConfig::new()
        .with_d_features(backbone.d_features())
        .with_backbone(backbone)
        .with_d_model(d_model)
        .with_n_heads(stacks.n_heads)
        .with_n_encoder_layers(stacks.n_encoder_layers)
        .with_n_decoder_layers(stacks.n_decoder_layers)
        .with_d_ff(stacks.d_ff)
        .with_n_queries(file.size_or("num_queries", 100)?)
        .with_block(stacks.block);
    Ok((config, names))
}
