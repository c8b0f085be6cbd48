//! What all families whose model is a [`LanguageModel`] share.

use std::path::Path;

use burn::tensor::Device;

use super::{gpt_neox, gpt2, llama};
use crate::{
    language_model::{LanguageModel, LanguageModelConfig},
    pretrained::{ConfigFile, LoadOptions, PretrainedError},
    weights::Table,
};

type Load = fn(&Path, &LoadOptions) -> Result<LanguageModel, PretrainedError>;

impl LanguageModel {
    /// Loads a model of any family that this crate knows, by the `model_type` of `config.json`: as [`gpt2::from_pretrained`],
    /// [`gpt_neox::from_pretrained`] or [`llama::from_pretrained`].
    ///
    /// # Errors
    ///
    /// When a file cannot be read, or a field, a value or a tensor is not supported. The error names the file, field or tensor.
    ///
    /// # Cost
    ///
    /// That of the family's own function.
    ///
    /// # Example
    ///
    /// ```no_run
    /// // Not run: it reads half a gigabyte.
    /// use burn::tensor::Device;
    /// use burn_attn_models::language_model::LanguageModel;
    ///
    /// let model = LanguageModel::from_pretrained("openai-community/gpt2", &Device::default())?;
    /// # Ok::<(), burn_attn_models::pretrained::PretrainedError>(())
    /// ```
    pub fn from_pretrained(
        source: impl AsRef<Path>,
        device: &Device,
    ) -> Result<Self, PretrainedError> {
        Self::from_pretrained_with(source, &device.into())
    }

    /// [`from_pretrained`](Self::from_pretrained) with options, such as the dtype of the parameters.
    ///
    /// # Errors
    ///
    /// As [`from_pretrained`](Self::from_pretrained), and when the device does not compute in the dtype.
    pub fn from_pretrained_with(
        source: impl AsRef<Path>,
        options: &LoadOptions,
    ) -> Result<Self, PretrainedError> {
        let mut file = ConfigFile::read(source.as_ref(), "LanguageModel")?;
        file.needs("model_type")?;
        let gpt: [(&str, Load); 2] = [("gpt2", gpt2::load), ("gpt_neox", gpt_neox::load)];
        let llamas = llama::FAMILIES.map(|spec| (spec.model_type, llama::load as Load));
        let families: Vec<_> = gpt.into_iter().chain(llamas).collect();
        let load = file.choice("model_type", &families)?;
        load(source.as_ref(), options)
    }
}

/// Numbers that any model may have in its table of positions: 64 MiB.
const SMALL_TABLE: usize = 1 << 24;

/// Loads the model that `config` describes, made from `file`, all of whose fields must have been read.
///
/// A bare model is named by `body` where others have it as a part: its `embedding` has no name before it. It has no `head` unless that is
/// the embedding.
pub(super) fn loaded(
    (source, file): (&Path, ConfigFile),
    mut config: LanguageModelConfig,
    [body, embedding, head]: [&str; 3],
    table: impl Fn(&LanguageModelConfig) -> Table,
    options: &LoadOptions,
) -> Result<LanguageModel, PretrainedError> {
    let path = file.finish()?;
    if let Err(error) = config.validate() {
        return Err(PretrainedError::Config { path, error });
    }
    let weights = options.weights(source)?;
    // Position tables are as wide as the model or its heads, and are computed before the weights are compared with the model.
    let of_a_head = config.block.heads.d_head.unwrap_or(0);
    let width = config.d_model.max(config.n_heads.saturating_mul(of_a_head));
    let sizes = weights.tensors().flat_map(|(_, shape)| shape);
    let widest = sizes.copied().max().unwrap_or(0);
    if width > widest {
        return Err(PretrainedError::Width {
            path,
            width,
            widest,
        });
    }
    let positions = config.rotary_positions();
    let d_head = match of_a_head {
        0 => config.d_model / config.n_heads,
        d_head => d_head,
    };
    let rotary = positions.saturating_mul(d_head);
    // A tensor that repeats its numbers may say any size.
    let of_shape = |shape: &[usize]| shape.iter().copied().fold(1, usize::saturating_mul);
    let sizes = weights.tensors().map(|(_, shape)| of_shape(shape));
    let numbers = sizes.fold(0, usize::saturating_add);
    if rotary > numbers.max(SMALL_TABLE) {
        return Err(PretrainedError::Positions {
            path,
            positions,
            table: rotary,
            weights: numbers,
        });
    }
    let is_bare = weights.has(embedding);
    let lacks_head = is_bare && !config.tied && !weights.has(head);
    let weights = match is_bare {
        true => weights
            .rename("*", &format!("{body}.*"))
            .rename(&format!("{body}.{head}"), head),
        false => weights,
    };
    // Without a separate head.
    config.tied |= lacks_head;
    let mut model = config.init(&options.device);
    weights.load(&table(&config), &mut model)?;
    match lacks_head {
        true => Ok(model.without_logits()),
        false => Ok(model),
    }
}
