//! The files of `transformers`: what they say of a SegFormer, and what its tensors are called.

use std::path::Path;

use burn::{module::RunningState, tensor::Tensor};
use burn_attn::FeedForwardActivation;

use super::{DecodeHeadConfig, Segformer, SegformerConfig, SegformerStageConfig};
use crate::{
    families::files::{ModelFiles, cross_attention, feed_forward},
    pretrained::{ConfigFile, LoadOptions, PretrainedError, Result},
    weights::Table,
};

/// More than any size of a head, and little memory for the statistics of a batch norm, which exist before any weight is read.
const MOST: usize = 1 << 16;
/// The most blocks accepted: the largest published model has 52.
const MOST_BLOCKS: usize = 1000;

/// Loads a model with a `model_type` of `segformer` from a folder or a [name on the Hub](crate::pretrained). It has the heads that the weights have.
///
/// Files, errors and cost are those of [`LanguageModel::from_pretrained`](crate::language_model::LanguageModel::from_pretrained).
///
/// # Source
///
/// PyTorch equivalents: those of [`Segformer`].
pub fn from_pretrained(
    source: impl AsRef<Path>,
    options: impl Into<LoadOptions>,
) -> Result<Segformer, PretrainedError> {
    let valid = |(config, _): &(SegformerConfig, _)| config.validate();
    let ((mut config, decode_head), files) =
        ModelFiles::open(source, options, "SegFormer", read, valid)?;
    config.n_classes = files.outputs("classifier");
    let n_classes = files.outputs("decode_head.classifier");
    config.decode_head = n_classes.map(|n_classes| DecodeHeadConfig {
        n_classes,
        ..decode_head
    });
    let mut model = files.load(config.validate(), |device| config.init(device), &table())?;
    if let Some(head) = &mut model.decode_head {
        // Unlike parameters, running statistics are there before they are loaded, in the default dtype of the device.
        let dtype = head.norm.gamma.dtype();
        let cast = |state: &RunningState<Tensor<1>>| RunningState::new(state.value().cast(dtype));
        head.norm.running_mean = cast(&head.norm.running_mean);
        head.norm.running_var = cast(&head.norm.running_var);
    }
    Ok(model)
}

/// Which parameter of a [`Segformer`] is which tensor of `transformers`; [`save`](crate::weights::save()) writes them back by it, but for the number of
/// batches that a batch norm has seen.
pub fn table() -> Table {
    let patches = Table::new()
        .convolution("projection", "proj")
        .norm("norm", "layer_norm");
    let projections = ["self.query", "self.key", "self.value", "output.dense"];
    let block = Table::new()
        .part("attention", "attention", cross_attention(projections))
        .convolution("reduction.projection", "attention.self.sr")
        .norm("reduction.norm", "attention.self.layer_norm")
        .norm("attention_residual.norm", "layer_norm_1")
        .part("feed_forward", "mlp", feed_forward(["dense1", "dense2"]))
        .convolution("feed_forward.depthwise", "mlp.dwconv.dwconv")
        .norm("feed_forward_residual.norm", "layer_norm_2");
    let of_stage = "patch_embeddings.{stage}";
    let encoder = Table::new()
        .part("stages.{stage}.patches", of_stage, patches)
        .layers("stages.{stage}.blocks", "block.{stage}", block)
        .norm("stages.{stage}.norm", "layer_norm.{stage}");
    let decode_head = Table::new()
        .linear("projections.{stage}", "linear_c.{stage}.proj")
        .row("fuse.weight", "linear_fuse.weight")
        .norm("norm", "batch_norm")
        .row("norm.running_mean", "batch_norm.running_mean")
        .row("norm.running_var", "batch_norm.running_var")
        // Only a norm that gives all batches the same weight reads the count.
        .ignore("batch_norm.num_batches_tracked")
        .convolution("classifier", "classifier");
    Table::new()
        .part("", "segformer.encoder", encoder)
        .part("decode_head", "decode_head", decode_head)
        .linear("head", "classifier")
        // A model without a head.
        .may_lack("segformer", "encoder.*")
}

/// The encoder, and what a head for classes of pixels would be, but for their number.
fn read(file: &mut ConfigFile) -> Result<(SegformerConfig, DecodeHeadConfig)> {
    file.choice("model_type", &[("segformer", ())])?;
    // All layer norms of the reference have an epsilon of 1e-5, whatever the first field says. The next two are about the form of a result and
    // about the labels of training. No version reads the others, which old versions wrote.
    file.ignore("layer_norm_eps reshape_last_stage semantic_loss_ignore_index downsampling_rates image_size");
    let n_stages = file.size_or("num_encoder_blocks", 4)?;
    let mut sizes = |field: &str, missing: [usize; 4]| {
        file.sizes_as(field, missing.into(), ("num_encoder_blocks", n_stages))
    };
    let d_models = sizes("hidden_sizes", [32, 64, 160, 256])?;
    let depths = sizes("depths", [2; 4])?;
    let heads = sizes("num_attention_heads", [1, 2, 5, 8])?;
    let reductions = sizes("sr_ratios", [8, 4, 2, 1])?;
    let patch_sizes = sizes("patch_sizes", [7, 3, 3, 3])?;
    let strides = sizes("strides", [4, 2, 2, 2])?;
    let mlp_ratios = sizes("mlp_ratios", [4; 4])?;
    let is_supported = depths.iter().sum::<usize>() <= MOST_BLOCKS;
    let most = || format!("at most {MOST_BLOCKS} blocks together");
    file.check("depths", is_supported, most)?;
    let stage = |at: usize| {
        SegformerStageConfig::new(d_models[at], depths[at], heads[at], reductions[at])
            .with_patch_size(patch_sizes[at])
            .with_stride(strides[at])
            .with_mlp_ratio(mlp_ratios[at])
    };
    let config = SegformerConfig::new()
        .with_n_channels(file.size_or("num_channels", 3)?)
        .with_stages((0..n_stages).map(stage).collect())
        .with_activation(file.activation("hidden_act", FeedForwardActivation::Gelu)?)
        .with_dropout(file.number("hidden_dropout_prob", 0.0)?)
        .with_attention_dropout(file.number("attention_probs_dropout_prob", 0.0)?)
        .with_stochastic_depth(file.number("drop_path_rate", 0.1)?);
    let d_decoder = file.size_or("decoder_hidden_size", 256)?;
    let most = || format!("at most {MOST}");
    file.check("decoder_hidden_size", d_decoder <= MOST, most)?;
    let decode_head = DecodeHeadConfig::new(1)
        .with_d_model(d_decoder)
        .with_dropout(file.number("classifier_dropout_prob", 0.1)?);
    Ok((config, decode_head))
}
