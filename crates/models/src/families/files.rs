//! What the readers of files share: opening and loading, fields of `config.json`, and rows of tables of tensors.

use std::path::{Path, PathBuf};

use burn::{module::Module, tensor::Device};
use burn_attn::{BlockConfig, ConfigError};
use serde_json::json;

use crate::{
    pretrained::{ConfigFile, LoadOptions, PretrainedError, Result},
    weights::{Table, Weights, joined},
};

/// The files of a model whose `config.json` has been read.
pub(super) struct ModelFiles {
    source: PathBuf,
    pub(super) config: PathBuf,
    pub(super) weights: Weights,
    device: Device,
}

impl ModelFiles {
    /// What `read` makes of the `config.json` of a model of this family, and the [files beside](Self::beside) it, if `valid` accepts the configuration.
    pub(super) fn open<C>(
        source: impl AsRef<Path>,
        options: impl Into<LoadOptions>,
        family: &'static str,
        read: impl FnOnce(&mut ConfigFile) -> Result<C>,
        valid: impl FnOnce(&C) -> Result<(), ConfigError>,
    ) -> Result<(C, Self)> {
        let source = source.as_ref();
        let mut file = ConfigFile::read(source, family)?;
        let config = read(&mut file)?;
        let files = Self::beside((source, file), &options.into(), valid(&config))?;
        Ok((config, files))
    }

    /// The files of a model whose `file`, all of whose fields must have been read, is `valid`: only then are its weights looked for.
    pub(super) fn beside(
        (source, mut file): (&Path, ConfigFile),
        options: &LoadOptions,
        valid: Result<(), ConfigError>,
    ) -> Result<Self> {
        let opened = file.take_weights();
        let config = file.finish()?;
        check(&config, valid)?;
        Ok(Self {
            source: source.into(),
            config,
            weights: options.weights(source, opened)?,
            device: options.device.clone(),
        })
    }

    /// The outputs of the linear layer or convolution of this name, if the weights have it: the classes of a head.
    pub(super) fn outputs(&self, layer: &str) -> Option<usize> {
        let weight = format!("{layer}.weight");
        let mut tensors = self.weights.tensors();
        let (_, shape) = tensors.find(|(name, _)| *name == weight)?;
        shape.first().copied()
    }

    /// The model that `init` builds, with the weights. Fails first if `valid`, the check of a configuration with what the weights say, is an error.
    pub(super) fn load<M: Module>(
        &self,
        valid: Result<(), ConfigError>,
        init: impl FnOnce(&Device) -> M,
        table: &Table,
    ) -> Result<M> {
        check(&self.config, valid)?;
        let mut model = init(&self.device);
        let loaded = self.weights.load(table, &mut model);
        loaded.map_err(|error| PretrainedError::weights(&self.source, error))?;
        Ok(model)
    }
}

fn check(config: &Path, valid: Result<(), ConfigError>) -> Result<()> {
    valid.map_err(|error| PretrainedError::Config {
        path: config.into(),
        error,
    })
}

/// The fields for training on masked spectrograms ("SpecAugment", arXiv:1904.08779) and for heads for classes, in models of speech.
pub(super) const SPEECH_TRAINING: &str = "apply_spec_augment mask_time_prob mask_time_length mask_time_min_masks mask_feature_prob \
     mask_feature_length mask_feature_min_masks classifier_proj_size use_weighted_layer_sum";

/// A layer like `base` with the activation and the dropout of the file. `activation` and `residual` name the fields of the activation and of the dropout of
/// residual sums; the fields of the other dropouts have one name in all families.
pub(super) fn block(
    file: &mut ConfigFile,
    base: BlockConfig,
    [activation, residual]: [&str; 2],
) -> Result<BlockConfig, PretrainedError> {
    let missing = [base.attention_dropout, base.feed_forward_dropout];
    let [of_attention, of_feed_forward] = missing.map(|rate| rate.unwrap_or(base.dropout));
    let activation = file.activation(activation, base.activation)?;
    Ok(base
        .clone()
        .with_activation(activation)
        .with_dropout(file.number(residual, base.dropout)?)
        .with_attention_dropout(file.number("attention_dropout", of_attention)?)
        .with_feed_forward_dropout(file.number("activation_dropout", of_feed_forward)?))
}

/// An encoder and a decoder, by the fields that models have from BART (arXiv:1910.13461).
pub(super) struct EncoderDecoder {
    pub(super) n_heads: usize,
    pub(super) d_ff: usize,
    pub(super) n_encoder_layers: usize,
    pub(super) n_decoder_layers: usize,
    pub(super) block: BlockConfig,
}

impl EncoderDecoder {
    /// What a file says, with the number of heads and the width of the feed-forward networks that a missing field means, and layers like `base`. Refuses
    /// encoders and decoders in which these differ.
    pub(super) fn read(
        file: &mut ConfigFile,
        n_heads: usize,
        d_ff: usize,
        base: BlockConfig,
    ) -> Result<Self> {
        let mut both = |[encoder, decoder]: [&'static str; 2], missing| {
            let size = file.size_or(encoder, missing)?;
            file.size_as(decoder, missing, (encoder, size))?;
            Ok::<_, PretrainedError>(size)
        };
        let n_heads = both(
            ["encoder_attention_heads", "decoder_attention_heads"],
            n_heads,
        )?;
        let d_ff = both(["encoder_ffn_dim", "decoder_ffn_dim"], d_ff)?;
        let n_encoder_layers = file.layers("encoder_layers")?;
        file.only("num_hidden_layers", json!(n_encoder_layers))?;
        Ok(Self {
            n_heads,
            d_ff,
            n_encoder_layers,
            n_decoder_layers: file.layers("decoder_layers")?,
            block: block(file, base, ["activation_function", "dropout"])?,
        })
    }
}

/// The query, key, value and output projections of a self-attention.
pub(super) fn self_attention([query, key, value, output]: [&str; 4]) -> Table {
    Table::new()
        .linear("query_key_value", [query, key, value])
        .linear("output", output)
}

/// The query, key, value and output projections of a cross-attention.
pub(super) fn cross_attention([query, key, value, output]: [&str; 4]) -> Table {
    Table::new()
        .linear("query", query)
        .linear("key_value", [key, value])
        .linear("output", output)
}

/// The two linear layers of a feed-forward network.
pub(super) fn feed_forward([inner, outer]: [&str; 2]) -> Table {
    Table::new()
        .linear("linear_inner", inner)
        .linear("linear_outer", outer)
}

/// The names of the parts of a gated feed-forward network in Llama and most models since.
pub(super) const GATED: [&str; 3] = ["gate_proj", "up_proj", "down_proj"];

/// The linear layers of a gated feed-forward network: gate, up and down in `module`.
pub(super) fn gated_feed_forward(module: &str, names: [&str; 3]) -> Table {
    let [gate, up, down] = names.map(|name| joined(module, name));
    Table::new()
        .linear("linear_inner", vec![gate, up])
        .linear("linear_outer", down)
}

/// Experts below `mlp`, and a network that every position uses, which the source calls `shared`.
pub(super) fn experts_and_shared(shared: &str) -> Table {
    let expert = gated_feed_forward("mlp.experts.{expert}", GATED);
    let shared = gated_feed_forward(&joined("mlp", shared), GATED);
    Table::new()
        .linear("router", "mlp.gate")
        .part("experts.{expert}", "", expert)
        .part("shared", "", shared)
}
