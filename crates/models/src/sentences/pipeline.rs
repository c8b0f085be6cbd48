//! Which modules make a vector of a text.

use std::path::{Path, PathBuf};

use super::{
    files::{self, FAMILY},
    stage::Stage,
    transformer_config::{Prompts, TransformerConfig},
};
use crate::{
    bert::Pooling,
    pretrained::{
        LoadOptions, MODULES, PretrainedError, SentenceModule, Wanted, folder_with,
        sentence_modules,
    },
    weights::gguf_metadata,
};

/// The kinds of pooling, by their names and by the fields of the older schema, in the order in which that puts them side by side.
const POOLINGS: [(&str, &str, Pooling); 6] = [
    ("cls", "pooling_mode_cls_token", Pooling::Cls),
    ("max", "pooling_mode_max_tokens", Pooling::Max),
    ("mean", "pooling_mode_mean_tokens", Pooling::Mean),
    (
        "mean_sqrt_len_tokens",
        "pooling_mode_mean_sqrt_len_tokens",
        Pooling::MeanSqrtLen,
    ),
    (
        "weightedmean",
        "pooling_mode_weightedmean_tokens",
        Pooling::WeightedMean,
    ),
    ("lasttoken", "pooling_mode_lasttoken", Pooling::LastToken),
];
/// The same in llama.cpp.
const POOLING_TYPE: &str = "bert.pooling_type";
const POOLING_TYPES: [(u64, Pooling); 3] = [
    (1, Pooling::Mean),
    (2, Pooling::Cls),
    (3, Pooling::LastToken),
];

/// All but the transformer itself.
pub(super) struct Pipeline {
    /// The transformer and its tokenizer.
    pub(super) source: PathBuf,
    /// The width of its states, by the configuration of the pooling.
    pub(super) d_model: Option<usize>,
    pub(super) transformer: TransformerConfig,
    pub(super) prompts: Prompts,
    /// The vectors that are put side by side.
    pub(super) pooling: Vec<Pooling>,
    /// What comes after it.
    pub(super) stages: Vec<Stage>,
    /// The width of the vectors, if it is not that of the states.
    pub(super) width: Option<usize>,
}

impl Pipeline {
    /// What the files beside the transformer's weights say.
    pub(super) fn read(source: &Path, options: &LoadOptions) -> Result<Self, PretrainedError> {
        let folder = folder_with(source, Wanted::Sentences)?;
        let is_gguf = source.is_file();
        let of_gguf = match is_gguf {
            true => pooling_type(source)?,
            false => None,
        };
        let Some(modules) = sentence_modules(&folder)? else {
            return Ok(Self {
                source: source.into(),
                d_model: None,
                transformer: TransformerConfig::of_tokenizer(&folder)?,
                prompts: Prompts::default(),
                pooling: vec![of_gguf.unwrap_or(Pooling::Mean)],
                stages: is_gguf.then_some(Stage::Normalize).into_iter().collect(),
                width: None,
            });
        };
        let unsupported = |number: usize, supported: &str| {
            let class = modules.get(number).map(|module| module.class.as_str());
            PretrainedError::Unsupported {
                path: folder.join(MODULES),
                field: format!("type of module {number}"),
                found: class.map_or("missing".into(), |class| format!("{class:?}")),
                supported: supported.into(),
                family: FAMILY,
            }
        };
        let is = |number: usize, name: &str| {
            let module: Option<&SentenceModule> = modules.get(number);
            module.filter(|module| module.name() == Some(name))
        };
        let Some(transformer) = is(0, "Transformer") else {
            return Err(unsupported(0, "a Transformer of sentence_transformers"));
        };
        let Some(of_pooling) = is(1, "Pooling") else {
            return Err(unsupported(1, "a Pooling of sentence_transformers"));
        };
        let prompts = Prompts::of(&folder)?;
        let (pooling, d_model) = pooling(&folder.join(&of_pooling.path), &prompts)?;
        if let Some(said) = of_gguf.filter(|&said| pooling != [said]) {
            return Err(PretrainedError::Unsupported {
                path: source.into(),
                field: POOLING_TYPE.into(),
                found: format!("{said:?}"),
                supported: format!("{pooling:?}, as {MODULES} beside it says"),
                family: FAMILY,
            });
        }
        let mut width = pooling.len() * d_model;
        let mut stages = Vec::new();
        for (number, module) in modules.iter().enumerate().skip(2) {
            let folder = folder.join(&module.path);
            stages.push(match module.name() {
                Some("Dense") => {
                    let (stage, outputs) = Stage::dense(&folder, width, options)?;
                    width = outputs;
                    stage
                }
                Some("Normalize") => Stage::normalize(&folder)?,
                _ => {
                    let supported = "Dense or Normalize of sentence_transformers behind a Pooling";
                    return Err(unsupported(number, supported));
                }
            });
        }
        let of_transformer = folder.join(&transformer.path);
        let config = TransformerConfig::of_tokenizer(&of_transformer)?;
        let is_below = !transformer.path.is_empty() && !is_gguf;
        Ok(Self {
            transformer: config.and_sentence_config(&of_transformer)?,
            // Not its folder: a name on the Hub has no weights there yet.
            source: if is_below {
                of_transformer
            } else {
                source.into()
            },
            d_model: Some(d_model),
            prompts,
            pooling,
            stages,
            width: Some(width),
        })
    }
}

/// The vectors that a Pooling module puts side by side, and the width of each.
fn pooling(folder: &Path, prompts: &Prompts) -> Result<(Vec<Pooling>, usize), PretrainedError> {
    let mut file = files::read(folder.join("config.json"))?;
    let names: Vec<&str> = POOLINGS.iter().map(|(name, ..)| *name).collect();
    let supported = format!("{}, or a list of them", names.join(", "));
    let named = file.parsed("pooling_mode", &supported, |value| {
        let list = value.as_array().cloned().unwrap_or(vec![value.clone()]);
        let poolings = list.iter().map(|name| {
            let found = POOLINGS.iter().find(|(known, ..)| *name == *known);
            found.map(|(.., pooling)| *pooling)
        });
        let poolings: Option<Vec<Pooling>> = poolings.collect();
        poolings.filter(|poolings| !poolings.is_empty())
    })?;
    let mut flagged = Vec::new();
    for (_, flag, pooling) in POOLINGS {
        if file.flag(flag, false)? {
            flagged.push(pooling);
        }
    }
    if flagged.is_empty() {
        flagged.push(Pooling::Mean);
    }
    // Without the prompt's tokens the vector would be another one.
    if !file.flag("include_prompt", true)? && prompts.are_there() {
        return Err(file.unsupported("include_prompt", "true where there are prompts"));
    }
    let d_model = match file.has("embedding_dimension") {
        true => file.size("embedding_dimension")?,
        false => file.size("word_embedding_dimension")?,
    };
    file.ignore("word_embedding_dimension");
    file.finish()?;
    Ok((named.unwrap_or(flagged), d_model))
}

/// How the model of a GGUF file pools, if it says so.
fn pooling_type(path: &Path) -> Result<Option<Pooling>, PretrainedError> {
    let metadata = gguf_metadata(path).map_err(|reason| PretrainedError::File {
        path: path.into(),
        reason,
    })?;
    let mut file = files::of_fields(path.into(), metadata);
    file.parsed(POOLING_TYPE, "1 (mean), 2 (cls) or 3 (last)", |value| {
        let found = POOLING_TYPES.iter().find(|(known, _)| *value == *known);
        found.map(|(_, pooling)| *pooling)
    })
}
