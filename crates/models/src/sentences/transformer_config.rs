//! What the files say of the transformer and its tokenizer: limits, case, prompts.

use std::{collections::BTreeMap, path::Path};

use serde_json::{Value, json};
use tokenizers::TruncationDirection;

use super::files::{MODULE_CONFIG, first_of};
use crate::pretrained::{Result, SENTENCE_CONFIGS, TOKENIZER_SETTINGS};

/// How texts are cut and lower-cased before the transformer reads them.
#[derive(Debug, Default)]
pub(super) struct TransformerConfig {
    /// Longest text (tokens), if the files say one.
    pub(super) max_len: Option<usize>,
    pub(super) do_lower_case: bool,
    /// Which end of longer texts is cut off.
    pub(super) truncation_side: Option<TruncationDirection>,
}

impl TransformerConfig {
    /// What `tokenizer_config.json` says.
    pub(super) fn of_tokenizer(folder: &Path) -> Result<Self> {
        // Not finished: its other fields are part of `tokenizer.json`.
        let Some(mut file) = first_of(folder, &["tokenizer_config.json"], TOKENIZER_SETTINGS)?
        else {
            return Ok(Self::default());
        };
        let max_len = match file.number_if_any("model_max_length")? {
            None => file.number_if_any("max_len")?,
            max_len => max_len,
        };
        let side = file.has("truncation_side").then(|| {
            let (left, right) = (TruncationDirection::Left, TruncationDirection::Right);
            file.choice("truncation_side", &[("right", right), ("left", left)])
        });
        Ok(Self {
            // A number beyond all texts means that there is no limit.
            max_len: max_len.map(|len| len as usize),
            do_lower_case: false,
            truncation_side: side.transpose()?,
        })
    }

    /// What `sentence_bert_config.json` says, or one of its other names, in the place of it.
    pub(super) fn and_sentence_config(mut self, folder: &Path) -> Result<Self> {
        let Some(mut file) = first_of(folder, &SENTENCE_CONFIGS, MODULE_CONFIG)? else {
            return Ok(self);
        };
        file.only("transformer_task", json!("feature-extraction"))?;
        file.only("module_output_name", json!("token_embeddings"))?;
        if let Some(mut modalities) = file.object("modality_config")? {
            modalities.needs("text")?;
            if let Some(mut text) = modalities.object("text")? {
                text.only("method", json!("forward"))?;
                text.only("method_output_name", json!("last_hidden_state"))?;
                text.finish()?;
            }
        }
        let empty = "model_args model_kwargs config_args config_kwargs processing_kwargs";
        file.only(empty, json!({}))?;
        let null = "query_length document_length query_expansion tokenizer_name_or_path";
        file.only(null, Value::Null)?;
        // A setting of speed.
        file.ignore("unpad_inputs");
        let mut max_len = file.size_if_any("max_seq_length")?;
        for arguments in ["tokenizer_args", "processor_kwargs"] {
            if let Some(mut arguments) = file.object(arguments)? {
                max_len = arguments.size_if_any("model_max_length")?.or(max_len);
                arguments.finish()?;
            }
        }
        self.max_len = max_len.or(self.max_len);
        self.do_lower_case = file.flag("do_lower_case", false)?;
        file.finish()?;
        Ok(self)
    }
}

/// What `config_sentence_transformers.json` says.
#[derive(Clone, Debug, Default)]
pub(super) struct Prompts {
    /// What a text begins with, unless it is known to be a query or a document.
    pub(super) default: String,
    pub(super) query: String,
    pub(super) document: String,
    /// How many of the first numbers of a vector are kept.
    pub(super) truncate_dim: Option<usize>,
}

impl Prompts {
    pub(super) fn are_there(&self) -> bool {
        [&self.default, &self.query, &self.document]
            .iter()
            .any(|prompt| !prompt.is_empty())
    }

    pub(super) fn of(folder: &Path) -> Result<Self> {
        let Some(mut file) = first_of(
            folder,
            &["config_sentence_transformers.json"],
            "the configuration of a sentence encoder",
        )?
        else {
            return Ok(Self::default());
        };
        file.only("model_type", json!("SentenceTransformer"))?;
        file.ignore("__version__ requirements similarity_fn_name");
        let prompts = file.parsed("prompts", "a text for each name", |prompts| {
            serde_json::from_value::<BTreeMap<String, Option<String>>>(prompts.clone()).ok()
        })?;
        let prompts = prompts.into_iter().flatten();
        // Every model has these two prompts.
        let empty = ["query", "document"].map(|name| (name.to_owned(), String::new()));
        let mut by_name = BTreeMap::from(empty);
        by_name.extend(prompts.map(|(name, prompt)| (name, prompt.unwrap_or_default())));
        let default = file.parsed("default_prompt_name", "the name of a prompt", |name| {
            by_name.get(name.as_str()?).cloned()
        })?;
        let truncate_dim = file.size_if_any("truncate_dim")?;
        file.check("truncate_dim", truncate_dim != Some(0), || "1 or more")?;
        file.finish()?;
        Ok(Self {
            default: default.unwrap_or_default(),
            query: by_name["query"].clone(),
            document: by_name["document"].clone(),
            truncate_dim,
        })
    }
}
