//! Which modules make a vector of a text.

use std::path::{Path, PathBuf};

use super::{
    files::{self, MODULE_CONFIG, unsupported},
    stage::Stage,
    transformer_config::{Prompts, TransformerConfig},
};
use crate::{
    bert::Pooling,
    pretrained::{
        LoadOptions, MODEL_CONFIG, MODULES, PretrainedError, Result, Wanted, folder_with,
        sentence_modules,
    },
    weights::Weights,
};

/// The kinds of pooling: their names, what the fields of the older schema add to `pooling_mode_`, in the order in which that puts them side by side.
const POOLINGS: [(&str, &str, Pooling); 6] = [
    ("cls", "cls_token", Pooling::Cls),
    ("max", "max_tokens", Pooling::Max),
    ("mean", "mean_tokens", Pooling::Mean),
    (
        "mean_sqrt_len_tokens",
        "mean_sqrt_len_tokens",
        Pooling::MeanSqrtLen,
    ),
    ("weightedmean", "weightedmean_tokens", Pooling::WeightedMean),
    ("lasttoken", "lasttoken", Pooling::LastToken),
];
/// The kinds of pooling in llama.cpp.
const POOLING_TYPE: &str = "bert.pooling_type";
const POOLING_TYPES: [(u64, Pooling); 3] = [
    (1, Pooling::Mean),
    (2, Pooling::Cls),
    (3, Pooling::LastToken),
];

/// The modules of a sentence encoder without the weights of its transformer.
pub(super) struct Pipeline {
    /// The transformer and its tokenizer.
    pub(super) source: PathBuf,
    /// The width of its states, by the configuration of the pooling.
    pub(super) d_model: Option<usize>,
    pub(super) transformer: TransformerConfig,
    pub(super) prompts: Prompts,
    /// The vectors that are put side by side.
    pub(super) pooling: Vec<Pooling>,
    /// The modules after the pooling.
    pub(super) stages: Vec<Stage>,
    /// The width of the vectors, if it is not that of the states.
    pub(super) width: Option<usize>,
}

impl Pipeline {
    pub(super) fn read(source: &Path, options: &LoadOptions) -> Result<Self> {
        let folder = folder_with(source, Wanted::Sentences)?;
        let is_gguf = source.is_file();
        let of_gguf = if is_gguf { pooling_type(source)? } else { None };
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
        let wrong = |number: usize, supported: &str| {
            let class = modules
                .get(number)
                .map(|module| format!("{:?}", module.class));
            let field = format!("type of module {number}");
            let found = class.unwrap_or("missing".into());
            unsupported(folder.join(MODULES), field, found, supported)
        };
        let module = |number: usize, name: &str| {
            let module = modules.get(number);
            let module = module.filter(|module| module.name() == Some(name));
            module.ok_or_else(|| wrong(number, &format!("a {name} of sentence_transformers")))
        };
        let (transformer, of_pooling) = (module(0, "Transformer")?, module(1, "Pooling")?);
        let prompts = Prompts::of(&folder)?;
        let (pooling, d_model) = pooling(&folder.join(&of_pooling.path), &prompts)?;
        if let Some(said) = of_gguf.filter(|&said| pooling != [said]) {
            let supported = format!("{pooling:?}, as {MODULES} beside it says");
            let found = format!("{said:?}");
            return Err(unsupported(source.into(), POOLING_TYPE, found, supported));
        }
        let of_stages = "Dense or Normalize of sentence_transformers behind a Pooling";
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
                _ => return Err(wrong(number, of_stages)),
            });
        }
        let of_transformer = folder.join(&transformer.path);
        let config = TransformerConfig::of_tokenizer(&of_transformer)?;
        let is_below = !transformer.path.is_empty() && !is_gguf;
        Ok(Self {
            transformer: config.and_sentence_config(&of_transformer)?,
            // The source and not its folder: the weights of a name on the Hub are not downloaded yet.
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
fn pooling(folder: &Path, prompts: &Prompts) -> Result<(Vec<Pooling>, usize)> {
    let mut file = files::read(folder.join("config.json"), MODULE_CONFIG)?;
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
        if file.flag(&format!("pooling_mode_{flag}"), false)? {
            flagged.push(pooling);
        }
    }
    if flagged.is_empty() {
        flagged.push(Pooling::Mean);
    }
    // Without the prompt's tokens the vector would be another one.
    let includes = file.flag("include_prompt", true)? || !prompts.are_there();
    let supported = || "true where there are prompts";
    file.check("include_prompt", includes, supported)?;
    let d_model = match file.has("embedding_dimension") {
        true => file.size("embedding_dimension")?,
        false => file.size("word_embedding_dimension")?,
    };
    file.ignore("word_embedding_dimension");
    file.finish()?;
    Ok((named.unwrap_or(flagged), d_model))
}

/// How the model of a GGUF file pools, if it says so.
fn pooling_type(path: &Path) -> Result<Option<Pooling>> {
    let opened = Weights::open_gguf(path);
    let (metadata, _) =
        opened.map_err(|reason| PretrainedError::file(path, MODEL_CONFIG, reason))?;
    let mut file = files::of_fields(path.into(), metadata);
    file.parsed(POOLING_TYPE, "1 (mean), 2 (cls) or 3 (last)", |value| {
        let found = POOLING_TYPES.iter().find(|(known, _)| *value == *known);
        found.map(|(_, pooling)| *pooling)
    })
}
