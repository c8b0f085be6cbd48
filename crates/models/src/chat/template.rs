//! How a conversation becomes one text: by the chat template that a model was trained with, written in Jinja.

mod json;
mod python;
mod source;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use minijinja::{
    Environment, context,
    syntax::SyntaxConfig,
    value::{Serde, ValueKind},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ChatError;
use crate::pretrained::{TOKENIZER_CONFIG, text_of, tokenizer_fields};

/// One message of a conversation, in JSON `{"role": "user", "content": "…"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// `system`, `user` or `assistant`, or another role that the template knows.
    pub role: String,
    /// The text.
    pub content: String,
}

impl Message {
    /// A message of this role.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        Self {
            role: role.into(),
            content: content.into(),
        }
    }
}

/// How messages become one text.
#[derive(Clone, Debug)]
pub struct Template {
    path: PathBuf,
    environment: Environment<'static>,
    /// `bos_token` and the like, by name.
    tokens: Map<String, Value>,
    /// What the caller tells the template beside them, by name.
    variables: BTreeMap<String, minijinja::Value>,
}

const NAME: &str = "chat";
/// What [`Template::text`] tells a template.
const OF_TEXT: [&str; 4] = ["messages", "add_generation_prompt", "tools", "documents"];

impl Template {
    /// The template in the files of a folder: `chat_template.jinja`, or the field `chat_template` of `tokenizer_config.json`. Models that were
    /// only trained to continue texts have none.
    ///
    /// # Errors
    ///
    /// When a file cannot be read, or its template cannot be compiled, or none of its named templates is `default`.
    pub fn of(folder: &Path) -> Result<Option<Self>, ChatError> {
        let fields = tokenizer_fields(folder)?;
        let alone = folder.join("chat_template.jinja");
        let (path, source) = if alone.exists() {
            let source = fs::read_to_string(&alone);
            (alone, source.map_err(|error| error.to_string()))
        } else if let Some(source) = in_config(&fields) {
            (folder.join(TOKENIZER_CONFIG), source)
        } else {
            return Ok(None);
        };
        let compiled = source.and_then(|source| {
            let environment = compiled(&source);
            environment.map_err(|error| error.to_string())
        });
        let environment = compiled.map_err(|reason| ChatError::Template {
            path: path.clone(),
            reason,
        })?;
        let tokens = fields.into_iter().filter_map(|(name, token)| {
            let text = text_of(&token).filter(|_| name.ends_with("_token"))?;
            Some((name, Value::from(text)))
        });
        Ok(Some(Self {
            path,
            environment,
            tokens: tokens.collect(),
            variables: BTreeMap::new(),
        }))
    }

    /// Gives the template a variable, in place of an earlier one of this name: a bool, a number, a text, or anything else that serde serializes. Which ones it reads is said
    /// by the model's page; it ignores others. In transformers, they are further arguments of `apply_chat_template`.
    ///
    /// # Errors
    ///
    /// When the value cannot be serialized (a part of it that cannot is refused by [`text`](Self::text), where the template reads it), or the template gets something of this name anyway: `messages`, `add_generation_prompt`, `tools`, `documents`, or a special token of the
    /// tokenizer's files, such as `bos_token`.
    ///
    /// # Example
    ///
    /// A Qwen 3 that answers without thinking first.
    ///
    /// ```no_run
    /// // Not run: it reads more than a gigabyte.
    /// use burn::tensor::Device;
    /// use burn_attn_models::chat::ChatModel;
    ///
    /// let mut model = ChatModel::from_pretrained("Qwen/Qwen3-0.6B", &Device::default())?;
    /// model.template = model.template.map(|template| template.with_variable("enable_thinking", false)).transpose()?;
    /// # Ok::<(), burn_attn_models::chat::ChatError>(())
    /// ```
    pub fn with_variable(mut self, name: &str, value: impl Serialize) -> Result<Self, ChatError> {
        if OF_TEXT.contains(&name) || self.tokens.contains_key(name) {
            let reason =
                format!("{name:?} cannot be a variable, because the template gets it anyway");
            return Err(self.refused(&reason));
        }
        // Not as JSON, whose objects lose the order of their fields.
        let value = minijinja::Value::from(Serde(value));
        if value.kind() == ValueKind::Invalid {
            return Err(self.refused(&value.to_string()));
        }
        self.variables.insert(name.into(), value);
        Ok(self)
    }

    /// The text up to where the assistant's next message begins, with all special tokens.
    ///
    /// # Errors
    ///
    /// When the template refuses the messages.
    pub fn text(&self, messages: &[Message]) -> Result<String, ChatError> {
        let rendered = self.environment.get_template(NAME).and_then(|template| {
            let of_text = context! {
                messages => Serde(messages),
                add_generation_prompt => true,
                tools => (),
                documents => (),
            };
            template.render(context! { ..of_text, ..Serde(&self.tokens), ..self.variables.clone() })
        });
        rendered.map_err(|error| self.refused(&error.to_string()))
    }

    pub(super) fn refused(&self, reason: &str) -> ChatError {
        ChatError::Template {
            path: self.path.clone(),
            reason: reason.into(),
        }
    }
}

fn compiled(source: &str) -> Result<Environment<'static>, minijinja::Error> {
    // Jinja takes every end of a line for this one, in texts too.
    let source = source.replace("\r\n", "\n").replace('\r', "\n");
    let mut environment = python::environment();
    environment.add_filter("tojson", json::tojson);
    let mut syntax = SyntaxConfig::builder();
    // As transformers sets it: a line with nothing but a tag leaves no trace.
    environment.set_syntax(syntax.trim_blocks(true).lstrip_blocks(true).build()?);
    environment.add_template_owned(NAME, source::for_minijinja(&source))?;
    Ok(environment)
}

/// `chat_template`: a text, or a list of named texts, of which `default` is taken, which has to be there.
fn in_config(fields: &Map<String, Value>) -> Option<Result<String, String>> {
    match fields.get("chat_template")? {
        Value::String(source) => Some(Ok(source.clone())),
        Value::Array(named) => {
            let default = named.iter().find(|named| named["name"] == "default");
            let source = default.and_then(|default| default["template"].as_str());
            let source = source.ok_or("none of its templates is named default");
            Some(source.map(String::from).map_err(String::from))
        }
        _ => None,
    }
}
