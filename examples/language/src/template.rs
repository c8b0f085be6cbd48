//! How a conversation becomes one text: by the chat template that a model was trained with, written in Jinja.

mod json;
mod python;
mod source;

use std::{
    fs,
    path::{Path, PathBuf},
};

use minijinja::{Environment, context, syntax::SyntaxConfig, value::Serde};
use serde::Serialize;
use serde_json::{Map, Value};
use tokenizers::Tokenizer;

use crate::Error;

/// What somebody said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Message {
    /// `system`, `user` or `assistant`.
    pub role: &'static str,
    /// The words.
    pub content: String,
}

/// How messages become a text.
#[derive(Debug)]
pub struct Template {
    /// The file that has it.
    path: PathBuf,
    /// The template, compiled.
    environment: Environment<'static>,
    /// `bos_token` and the like, by name.
    tokens: Map<String, Value>,
}

const NAME: &str = "chat";

impl Template {
    /// The template in the files of a folder: `chat_template.jinja`, or the field `chat_template` of `tokenizer_config.json`. Models that were
    /// only trained to continue texts have none.
    ///
    /// # Errors
    /// If a file cannot be read, or its template not be compiled.
    pub fn of(folder: &Path) -> Result<Option<Self>, Error> {
        let fields = of_tokenizer(folder)?;
        let config = folder.join(TOKENIZER_CONFIG);
        let alone = folder.join("chat_template.jinja");
        let (path, source) = if alone.exists() {
            let source = fs::read_to_string(&alone).map_err(Error::file("read", &alone))?;
            (alone, source)
        } else if let Some(source) = in_config(&fields) {
            (config, source)
        } else {
            return Ok(None);
        };
        Self::compile(path, source, fields).map(Some)
    }

    fn compile(path: PathBuf, source: String, fields: Map<String, Value>) -> Result<Self, Error> {
        let mut environment = python::environment();
        let mut syntax = SyntaxConfig::builder();
        let syntax = syntax.trim_blocks(true).lstrip_blocks(true).build();
        let compiled = syntax.and_then(|syntax| {
            // As transformers sets it: a line with nothing but a tag leaves no trace.
            environment.set_syntax(syntax);
            environment.add_template_owned(NAME, source::for_minijinja(&source))
        });
        if let Err(error) = compiled {
            return Err(Error::Template {
                path,
                problem: error.to_string(),
            });
        }
        let tokens = fields
            .into_iter()
            .filter(|(name, _)| name.ends_with("_token"));
        let tokens = tokens.filter_map(|(name, token)| {
            let text = text_of(&token)?.to_string();
            Some((name, Value::String(text)))
        });
        Ok(Self {
            path,
            environment,
            tokens: tokens.collect(),
        })
    }

    /// The text up to where the assistant's next message begins, with all special tokens.
    ///
    /// # Errors
    /// If the template refuses the messages.
    pub fn text(&self, messages: &[Message]) -> Result<String, Error> {
        let rendered = self.environment.get_template(NAME).and_then(|template| {
            template.render(context! {
                messages => Serde(messages),
                add_generation_prompt => true,
                tools => (),
                documents => (),
                ..Serde(&self.tokens)
            })
        });
        rendered.map_err(|error| Error::Template {
            path: self.path.clone(),
            problem: error.to_string(),
        })
    }
}

/// The tokens that end a text: those of `generation_config.json`, of `config.json`, and of the tokenizer's `eos_token`, all together. A model may end its
/// turns with one of them and its texts with another.
///
/// # Errors
/// If a file is there and cannot be read.
pub fn end_tokens(folder: &Path, tokenizer: &Tokenizer) -> Result<Vec<u32>, Error> {
    let mut ends = Vec::new();
    for name in ["generation_config.json", "config.json"] {
        let fields = fields_if_any(&folder.join(name))?.unwrap_or_default();
        let tokens = match fields.get("eos_token_id") {
            Some(Value::Array(tokens)) => tokens,
            Some(token) => std::slice::from_ref(token),
            None => &[],
        };
        let tokens = tokens.iter().filter_map(Value::as_u64);
        ends.extend(tokens.filter_map(|token| u32::try_from(token).ok()));
    }
    let fields = of_tokenizer(folder)?;
    let token = fields.get("eos_token").and_then(text_of);
    ends.extend(token.and_then(|token| tokenizer.token_to_id(token)));
    ends.sort_unstable();
    ends.dedup();
    Ok(ends)
}

const TOKENIZER_CONFIG: &str = "tokenizer_config.json";

/// The fields of the tokenizer's files.
fn of_tokenizer(folder: &Path) -> Result<Map<String, Value>, Error> {
    let mut fields = fields_if_any(&folder.join(TOKENIZER_CONFIG))?.unwrap_or_default();
    let more = fields_if_any(&folder.join("special_tokens_map.json"))?;
    for (name, token) in more.unwrap_or_default() {
        fields.entry(name).or_insert(token);
    }
    Ok(fields)
}

/// The text of a token, which is a text in the file, or an object that has it.
fn text_of(token: &Value) -> Option<&str> {
    token.get("content").unwrap_or(token).as_str()
}

/// The fields of a file in JSON, if it is there.
pub(crate) fn fields_if_any(path: &Path) -> Result<Option<Map<String, Value>>, Error> {
    if !path.exists() {
        return Ok(None);
    }
    let text = fs::read_to_string(path).map_err(Error::file("read", path))?;
    let fields = serde_json::from_str(&text);
    fields.map_err(|error| Error::file("read", path)(error.into()))
}

/// `chat_template`: a text, or a list of named ones of which `default` is meant.
fn in_config(fields: &Map<String, Value>) -> Option<String> {
    match fields.get("chat_template")? {
        Value::String(source) => Some(source.clone()),
        Value::Array(named) => {
            let default = named
                .iter()
                .find(|template| template["name"] == "default")?;
            default["template"].as_str().map(String::from)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
