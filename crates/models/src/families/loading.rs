//! What all families whose model is a [`LanguageModel`] share.

use std::path::Path;

use burn::tensor::Device;
use burn_attn::{ConfigError, TokenMixer};

use super::files::ModelFiles;
use crate::{
    language_model::{LanguageModel, LanguageModelConfig},
    pretrained::{ConfigFile, LoadOptions, PretrainedError},
    weights::Table,
};

/// Numbers that any model may have in its table of positions: 64 MiB.
const SMALL_TABLE: usize = 1 << 24;

/// [`loaded_with`] self-attention.
pub(super) fn loaded(
    from: (&Path, ConfigFile),
    config: LanguageModelConfig,
    names: [&str; 3],
    table: impl Fn(&LanguageModelConfig) -> Table,
    options: &LoadOptions,
) -> Result<LanguageModel, PretrainedError> {
    let init = LanguageModelConfig::init;
    loaded_with(from, (config, Ok(())), names, table, init, options)
}

/// Loads the model that `config` describes and `init` builds, unless the configurations of its mixers are not valid. It is made `from` a source and its
/// file, all of whose fields must have been read.
///
/// A bare model is named by `body` where others have it as a part: its `embedding` has no name before it. It has no `head` unless that is
/// the embedding.
pub(super) fn loaded_with<M: TokenMixer>(
    from: (&Path, ConfigFile),
    (mut config, mixers): (LanguageModelConfig, Result<(), ConfigError>),
    [body, embedding, head]: [&str; 3],
    table: impl Fn(&LanguageModelConfig) -> Table,
    init: impl FnOnce(&LanguageModelConfig, &Device) -> LanguageModel<M>,
    options: &LoadOptions,
) -> Result<LanguageModel<M>, PretrainedError> {
    let mut files = ModelFiles::beside(from, options, config.validate().and(mixers))?;
    // Position tables are as wide as the model or its heads, and are computed before the weights are compared with the model.
    let of_a_head = config.block.heads.d_head.unwrap_or(0);
    let width = config.d_model.max(config.n_heads.saturating_mul(of_a_head));
    let sizes = files.weights.tensors().flat_map(|(_, shape)| shape);
    let widest = *sizes.max().unwrap_or(&0);
    if width > widest {
        let reason = format!(
            "states or heads of width {width}, but no tensor of the weights is wider than {widest}"
        );
        let path = files.config;
        return Err(PretrainedError::Size { path, reason });
    }
    let [positions, rotary] = config.rotary_sizes();
    // A tensor that repeats its numbers may say any size.
    let of_shape = |shape: &[usize]| shape.iter().copied().fold(1, usize::saturating_mul);
    let sizes = files.weights.tensors();
    let sizes = sizes.map(|(_, shape)| of_shape(shape));
    let numbers = sizes.fold(0, usize::saturating_add);
    if rotary > numbers.max(SMALL_TABLE) {
        let reason = format!(
            "{positions} positions, whose tables would have {rotary} numbers, more than the {numbers} of the weights; \
             lower max_position_embeddings, or the factor of its scaling, to the longest text that is needed"
        );
        let path = files.config;
        return Err(PretrainedError::Size { path, reason });
    }
    let is_bare = files.weights.has(embedding);
    let lacks_head = is_bare && !config.tied && !files.weights.has(head);
    if is_bare {
        let weights = files.weights.rename("*", &format!("{body}.*"));
        files.weights = weights.rename(&format!("{body}.{head}"), head);
    }
    // Without a separate head.
    config.tied |= lacks_head;
    let init = |device: &Device| init(&config, device);
    let mut model = files.load(Ok(()), init, &table(&config))?;
    model.has_logits = !lacks_head;
    Ok(model)
}
