//! The files of `transformers`: what they say of a DETR, and what its tensors are called.

use std::path::Path;

use burn_attn::FeedForwardActivation;
use serde_json::json;

use super::{Detr, DetrConfig};
use crate::{
    families::resnet::backbone,
    pretrained::{ConfigFile, LoadOptions, PretrainedError},
    resnet::ResNetNames,
    weights::Table,
};

/// Loads a model from a folder that Hugging Face's `transformers` saved, or from a [name on the Hub](crate::pretrained): `config.json` with
/// a `model_type` of `detr`, and `model.safetensors`, its shards, or `pytorch_model.bin`. It has heads if the weights have them.
///
/// The backbone is a ResNet of `transformers`, or one of `timm` from ResNet-18 to ResNet-152. Dilated ones (DC5), learned positions of the image and
/// models for segmentation are refused; so are encoders and decoders with different numbers of heads or feed-forward widths, and `auxiliary_loss`, with which `transformers` normalises the decoder's states between its layers,
/// unlike the paper. Training differs: all convolutions are trained, where `transformers` freezes some.
///
/// Errors and cost are those of [`LanguageModel::from_pretrained`](crate::language_model::LanguageModel::from_pretrained).
///
/// # Source
///
/// PyTorch equivalents: `DetrForObjectDetection` and `DetrModel` of Hugging Face's `transformers`.
pub fn from_pretrained(
    source: impl AsRef<Path>,
    options: impl Into<LoadOptions>,
) -> Result<Detr, PretrainedError> {
    let options = options.into();
    let mut file = ConfigFile::read(source.as_ref(), "DETR")?;
    let (mut config, names) = read(&mut file)?;
    let path = file.finish()?;
    let weights = options.weights(source.as_ref())?;
    let classes = |(name, shape): (&str, &[usize])| {
        let logits = *shape.first()?;
        (name == "class_labels_classifier.weight").then(|| logits.saturating_sub(1))
    };
    config.n_classes = weights.tensors().find_map(classes);
    let valid = config.validate();
    valid.map_err(|error| PretrainedError::Config { path, error })?;
    let mut model = config.init(&options.device);
    weights.load(&table(names), &mut model)?;
    Ok(model)
}

/// Which parameter of a [`Detr`] is which tensor of `DetrForObjectDetection` with such a backbone; [`save`](crate::weights::save()) writes them
/// back by it.
pub fn table(backbone: ResNetNames) -> Table {
    Table::new()
        .part(
            "backbone",
            "model.backbone.conv_encoder.model",
            backbone.table(),
        )
        .same_names("projection", "model.input_projection", ["weight", "bias"])
        .row("queries", "model.query_position_embeddings.weight")
        .part(
            "encoder.layers.{layer}",
            "model.encoder.layers.{layer}",
            layer(),
        )
        .part(
            "decoder.layers.{layer}",
            "model.decoder.layers.{layer}",
            layer(),
        )
        .norm("decoder.norm", "model.decoder.layernorm")
        .linear("class_head", "class_labels_classifier")
        .linear("box_head.layers.{layer}", "bbox_predictor.layers.{layer}")
        // A model without heads.
        .rename("backbone.*", "model.backbone.*")
        .rename("input_projection.*", "model.input_projection.*")
        .rename(
            "query_position_embeddings.*",
            "model.query_position_embeddings.*",
        )
        .rename("encoder.*", "model.encoder.*")
        .rename("decoder.*", "model.decoder.*")
}

/// A layer of either stack: in the encoder, nothing attends to a memory.
fn layer() -> Table {
    Table::new()
        .linear(
            "self_attention.query_key_value",
            ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"],
        )
        .linear("self_attention.output", "self_attn.out_proj")
        .norm("self_attention_residual.norm", "self_attn_layer_norm")
        .linear("cross_attention.query", "encoder_attn.q_proj")
        .linear(
            "cross_attention.key_value",
            ["encoder_attn.k_proj", "encoder_attn.v_proj"],
        )
        .linear("cross_attention.output", "encoder_attn.out_proj")
        .norm("cross_attention_residual.norm", "encoder_attn_layer_norm")
        .linear("feed_forward.linear_inner", "fc1")
        .linear("feed_forward.linear_outer", "fc2")
        .norm("feed_forward_residual.norm", "final_layer_norm")
}

fn read(file: &mut ConfigFile) -> Result<(DetrConfig, ResNetNames), PretrainedError> {
    file.only("model_type", json!("detr"))?;
    file.only("position_embedding_type", json!("sine"))?;
    file.only("auxiliary_loss", json!(false))?;
    // For random initialisation and training, and for other models.
    file.ignore(
        "init_std init_xavier_std encoder_layerdrop decoder_layerdrop classifier_dropout class_cost bbox_cost giou_cost \
         mask_loss_coefficient dice_loss_coefficient bbox_loss_coefficient giou_loss_coefficient eos_coefficient \
         max_position_embeddings scale_embedding",
    );
    let (backbone, names) = backbone(file)?;
    let n_heads = file.size_or("encoder_attention_heads", 8)?;
    let of_encoder = ("encoder_attention_heads", n_heads);
    file.size_as("decoder_attention_heads", 8, of_encoder)?;
    file.only("num_attention_heads", json!(n_heads))?;
    let d_ff = file.size_or("encoder_ffn_dim", 2048)?;
    file.size_as("decoder_ffn_dim", 2048, ("encoder_ffn_dim", d_ff))?;
    let n_encoder_layers = file.layers("encoder_layers")?;
    file.only("num_hidden_layers", json!(n_encoder_layers))?;
    let d_model = file.size_or("d_model", 256)?;
    file.only("hidden_size", json!(d_model))?;
    let activation = file.activation("activation_function", FeedForwardActivation::Relu)?;
    let block = DetrConfig::base_block()
        .with_activation(activation)
        .with_dropout(file.number("dropout", 0.1)?)
        .with_attention_dropout(file.number("attention_dropout", 0.0)?)
        .with_feed_forward_dropout(file.number("activation_dropout", 0.0)?);
    let config = DetrConfig::new()
        .with_d_features(backbone.d_features())
        .with_backbone(backbone)
        .with_d_model(d_model)
        .with_n_heads(n_heads)
        .with_n_encoder_layers(n_encoder_layers)
        .with_n_decoder_layers(file.layers("decoder_layers")?)
        .with_d_ff(d_ff)
        .with_n_queries(file.size_or("num_queries", 100)?)
        .with_block(block);
    Ok((config, names))
}
