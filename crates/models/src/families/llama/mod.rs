//! Llama and its relatives: [`LanguageModel`]s with rotary positions, RMS norms, gated feed-forward networks and grouped heads.
//!
//! | `model_type` | what differs | source |
//! | --- | --- | --- |
//! | `llama` | scaled rotary positions from Llama 3.1 on | arXiv:2302.13971, arXiv:2407.21783 |
//! | `mistral` | a window in every layer | arXiv:2310.06825 |
//! | `qwen2` | biases on query, key and value | arXiv:2407.10671 |
//! | `qwen3` | normalised queries and keys | arXiv:2505.09388 |
//! | `gemma2` | norms before and after each sublayer, softcaps, windows in every other layer | arXiv:2408.00118 |
//! | `gemma3_text` | for each layer without a window, five with one and another rotary base; normalised queries and keys | arXiv:2503.19786 |
//! | `mixtral` | experts in every layer | arXiv:2401.04088 |
//! | `qwen3_moe` | Qwen 3 with experts, in every layer or in some | arXiv:2505.09388 |
//! | `gpt_oss` | experts with a clamped gate; attention sinks, windows in every other layer, biases; copies in bf16, as the published weights in MXFP4 are refused | arXiv:2508.10925 |
//! | `olmo2` | norms after the sublayers, queries and keys normalised across heads | arXiv:2501.00656 |

mod config;
pub(super) mod experts;
mod family;
pub(super) mod rotary;
pub(super) mod table;

use std::path::Path;

pub(crate) use family::FAMILIES;

use super::loading::loaded;
use crate::{
    language_model::{LanguageModel, LanguageModelConfig},
    pretrained::{ConfigFile, LoadOptions, PretrainedError, Result},
    weights::Table,
};

/// What errors call these families.
pub(super) const FAMILY: &str = "the Llama family";

/// [`LanguageModel::from_pretrained`] for a `model_type` of the [table](self), such as `"meta-llama/Llama-3.2-1B"`, or for a [GGUF file](crate::pretrained#gguf) of a `llama`, `qwen2` or `qwen3`.
///
/// Its [`max_len`](LanguageModel::max_len) is `max_position_embeddings`, or the length that YaRN or a linear scaling reaches, if that is more
/// (not in Gemma 3, whose files have the length after scaling).
///
/// A bare model (`LlamaModel`, whose tensors have no `model.` before their names) is loaded too. If it is not tied, it has states and
/// [no logits](LanguageModel::has_logits), and is saved by `table(source)?.bare("model")`.
///
/// # Cost
///
/// Beyond [`LanguageModel::from_pretrained`], one rotary table of `2 · max_len · d_head / 2` numbers; Gemma 3 has two.
pub fn from_pretrained(
    source: impl AsRef<Path>,
    options: impl Into<LoadOptions>,
) -> Result<LanguageModel, PretrainedError> {
    let source = source.as_ref();
    let file = ConfigFile::read(source, FAMILY)?;
    from_file((source, file), &options.into())
}

/// [`from_pretrained`], with a configuration that has been read.
pub(super) fn from_file(
    (source, mut file): (&Path, ConfigFile),
    options: &LoadOptions,
) -> Result<LanguageModel> {
    let (spec, config) = config::read(&mut file)?;
    let table = |config: &LanguageModelConfig| match source.is_file() {
        true => table::gguf(spec, config),
        false => table::table(spec, config),
    };
    let names = ["model", "embed_tokens.weight", "lm_head.weight"];
    loaded((source, file), config, names, table, options)
}

/// Which parameter of [`from_pretrained`]'s model is which tensor of `LlamaForCausalLM` and its relatives, to [write](crate::weights::save()) a file that
/// `transformers` reads; also of a model that was read from a GGUF file, whose tensors have other names. Fails as [`from_pretrained`], but only
/// `config.json` is read, or what the GGUF file says itself.
pub fn table(source: impl AsRef<Path>) -> Result<Table, PretrainedError> {
    let mut file = ConfigFile::read(source.as_ref(), FAMILY)?;
    let (spec, config) = config::read(&mut file)?;
    file.finish()?;
    Ok(table::table(spec, &config))
}
