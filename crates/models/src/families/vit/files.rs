//! The files of `transformers`: what they say of a vision transformer, and what its tensors are called.

use std::path::Path;

use burn::tensor::Device;
use burn_attn::{FeedForwardActivation, NormConfig};
use serde_json::json;

use super::{Vit, VitConfig};
use crate::{
    families::files::{ModelFiles, feed_forward, self_attention},
    pretrained::{ConfigFile, LoadOptions, PretrainedError, Result},
    weights::Table,
};

/// Loads a model with a `model_type` of `vit`, `deit` or `dinov2` from a folder or a [name on the Hub](crate::pretrained). It has a head if
/// the weights have one. DINOv2's models with a gate in their feed-forward networks (`use_swiglu_ffn`, the giant one) are refused. In training, the
/// rate of stochastic depth is the same in all layers, as in `transformers`.
///
/// Files, errors and cost are those of [`LanguageModel::from_pretrained`](crate::language_model::LanguageModel::from_pretrained).
///
/// # Source
///
/// PyTorch equivalents: those of [`Vit`].
pub fn from_pretrained(
    source: impl AsRef<Path>,
    options: impl Into<LoadOptions>,
) -> Result<Vit, PretrainedError> {
    let valid = |(config, _): &(VitConfig, _)| config.validate();
    let ((mut config, mut kind), files) = ModelFiles::open(source, options, "ViT", read, valid)?;
    if kind == VitFamily::Deit && !files.weights.has("distillation_classifier.weight") {
        kind = VitFamily::DeitOneHead;
    }
    config.n_classes = files.outputs(kind.head());
    let init = |device: &Device| {
        let mut model = config.init(device);
        if kind == VitFamily::DeitOneHead {
            model.distillation_head = None;
        }
        model
    };
    files.load(config.validate(), init, &kind.table())
}

/// The families, which name their tensors in different ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VitFamily {
    /// `vit`.
    Vit,
    /// `deit` with the heads of both tokens, or without heads.
    Deit,
    /// `deit` with the head of the class token alone.
    DeitOneHead,
    /// `dinov2`.
    Dinov2,
}

impl VitFamily {
    /// Its `model_type`, which is also the name of the encoder in a model with a head.
    fn name(self) -> &'static str {
        match self {
            Self::Vit => "vit",
            Self::Deit | Self::DeitOneHead => "deit",
            Self::Dinov2 => "dinov2",
        }
    }

    /// The head of the class token in a model with all heads.
    fn head(self) -> &'static str {
        match self {
            Self::Deit => "cls_classifier",
            Self::Vit | Self::DeitOneHead | Self::Dinov2 => "classifier",
        }
    }

    /// Which parameter of a [`Vit`] is which tensor of `transformers`; [`save`](crate::weights::save()) writes them back by it. In the files of a model
    /// without a head, nothing is before the names: that is `table().bare("vit")`, or with the `model_type` of another family.
    pub fn table(self) -> Table {
        let name = self.name();
        let encoder = Table::new()
            .row("class_token", "embeddings.cls_token")
            .row("distillation_token", "embeddings.distillation_token")
            .row("positions", "embeddings.position_embeddings")
            .convolution("patches", "embeddings.patch_embeddings.projection")
            .layers("encoder.layers", "encoder.layer", self.layer())
            .norm("encoder.norm", "layernorm")
            // For pretraining.
            .ignore("embeddings.mask_token pooler.*");
        Table::new()
            .part("", name, encoder)
            .linear("head", self.head())
            .linear("distillation_head", "distillation_classifier")
            // A model without a head.
            .may_lack(name, "embeddings.* encoder.* layernorm.* pooler.*")
    }

    fn layer(self) -> Table {
        let (linear_layers, [before_attention, before_feed_forward]) = match self {
            Self::Vit | Self::Deit | Self::DeitOneHead => (
                ["intermediate.dense", "output.dense"],
                ["layernorm_before", "layernorm_after"],
            ),
            Self::Dinov2 => (["mlp.fc1", "mlp.fc2"], ["norm1", "norm2"]),
        };
        let projections = [
            "attention.query",
            "attention.key",
            "attention.value",
            "output.dense",
        ];
        Table::new()
            .part("self_attention", "attention", self_attention(projections))
            .row("self_attention_residual.scale", "layer_scale1.lambda1")
            .norm("self_attention_residual.norm", before_attention)
            .part("feed_forward", "", feed_forward(linear_layers))
            .row("feed_forward_residual.scale", "layer_scale2.lambda1")
            .norm("feed_forward_residual.norm", before_feed_forward)
    }
}

fn read(file: &mut ConfigFile) -> Result<(VitConfig, VitFamily)> {
    use VitFamily::{Deit, DeitOneHead, Dinov2, Vit};

    let families = [Vit, Deit, Dinov2].map(|family| (family.name(), family));
    let family = file.choice("model_type", &families)?;
    // For pretraining, pooling and backbones.
    file.ignore(
        "encoder_stride pooler_act pooler_output_size apply_layernorm reshape_hidden_states out_features out_indices stage_names \
         use_mask_token",
    );
    file.only("qkv_bias", json!(true))?;
    let (epsilon, patch_size) = match family {
        Vit | Deit | DeitOneHead => (1e-12, 16),
        Dinov2 => (1e-6, 14),
    };
    let d_model = file.size_or("hidden_size", 768)?;
    let mut block = VitConfig::base_block()
        .with_norm(NormConfig::layer_norm().with_epsilon(file.number("layer_norm_eps", epsilon)?))
        .with_activation(file.activation("hidden_act", FeedForwardActivation::Gelu)?)
        .with_attention_dropout(file.number("attention_probs_dropout_prob", 0.0)?);
    let dropout = file.number("hidden_dropout_prob", 0.0)?;
    let d_ff = match family {
        Vit | Deit | DeitOneHead => {
            block = block.with_dropout(dropout);
            file.size_or("intermediate_size", 3072)?
        }
        Dinov2 => {
            file.only("use_swiglu_ffn", json!(false))?;
            block = block
                .with_layer_scale(file.number("layerscale_value", 1.0)?)
                .with_stochastic_depth(file.number("drop_path_rate", 0.0)?);
            d_model * file.size_or("mlp_ratio", 4)?
        }
    };
    let config = VitConfig::new()
        .with_image_size(file.size_or("image_size", 224)?)
        .with_patch_size(file.size_or("patch_size", patch_size)?)
        .with_n_channels(file.size_or("num_channels", 3)?)
        .with_d_model(d_model)
        .with_n_heads(file.size_or("num_attention_heads", 12)?)
        .with_n_layers(file.layers("num_hidden_layers")?)
        .with_d_ff(d_ff)
        .with_distilled(family == Deit)
        .with_mean_of_patches(family == Dinov2)
        .with_embedding_dropout(dropout)
        .with_block(block);
    Ok((config, family))
}
