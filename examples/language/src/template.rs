//! How a conversation becomes one text: by the chat template that a model was trained with, written in Jinja.

use std::{
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

use minijinja::{Environment, ErrorKind, context, syntax::SyntaxConfig, value::Serde};
use minijinja_contrib::pycompat::unknown_method_callback;
use serde::Serialize;
use serde_json::{Map, Value};

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
        let config = folder.join("tokenizer_config.json");
        let mut fields = fields_if_any(&config)?.unwrap_or_default();
        let more = fields_if_any(&folder.join("special_tokens_map.json"))?;
        for (name, token) in more.unwrap_or_default() {
            fields.entry(name).or_insert(token);
        }
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
        let mut environment = Environment::new();
        environment.set_unknown_method_callback(unknown_method_callback);
        environment.add_function(
            "raise_exception",
            |problem: String| -> Result<String, minijinja::Error> {
                Err(minijinja::Error::new(ErrorKind::InvalidOperation, problem))
            },
        );
        let mut syntax = SyntaxConfig::builder();
        let syntax = syntax.trim_blocks(true).lstrip_blocks(true).build();
        let compiled = syntax.and_then(|syntax| {
            // As transformers sets it: a line with nothing but a tag leaves no trace.
            environment.set_syntax(syntax);
            environment.add_template_owned(NAME, without_generation_tags(&source))
        });
        environment.add_function("strftime_now", |format: String| {
            let now = chrono::Local::now();
            let mut text = String::new();
            // A format that cannot be is an error here, and a panic in `to_string`.
            match write!(text, "{}", now.format(&format)) {
                Ok(()) => Ok(text),
                Err(_) => Err(minijinja::Error::new(
                    ErrorKind::InvalidOperation,
                    format!("strftime_now does not know {format:?}"),
                )),
            }
        });
        if let Err(error) = compiled {
            return Err(Error::Template {
                path,
                problem: error.to_string(),
            });
        }
        // A token is a text, or an object with its text.
        let tokens = fields
            .into_iter()
            .filter(|(name, _)| name.ends_with("_token"));
        let tokens = tokens.filter_map(|(name, token)| {
            let text = token.get("content").unwrap_or(&token).as_str()?.to_string();
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

/// The template without `{% generation %}` and `{% endgeneration %}`, which transformers has for training and Jinja has not.
fn without_generation_tags(source: &str) -> String {
    let mut kept = String::new();
    let mut rest = source;
    while let Some(start) = rest.find("{%") {
        let Some(len) = rest[start..].find("%}") else {
            break;
        };
        let (tag, end) = (&rest[start + 2..start + len], start + len + 2);
        let word = tag.trim_matches(|c: char| c == '-' || c == '+' || c.is_whitespace());
        let is_generation = ["generation", "endgeneration"].contains(&word);
        kept.push_str(if is_generation {
            &rest[..start]
        } else {
            &rest[..end]
        });
        rest = &rest[end..];
    }
    kept + rest
}

/// The tokens that end a text, by `generation_config.json` or else `config.json`.
///
/// # Errors
/// If a file is there and cannot be read.
pub fn end_tokens(folder: &Path) -> Result<Vec<u32>, Error> {
    for name in ["generation_config.json", "config.json"] {
        let Some(fields) = fields_if_any(&folder.join(name))? else {
            continue;
        };
        let number = |value: &Value| value.as_u64().and_then(|token| u32::try_from(token).ok());
        match fields.get("eos_token_id") {
            Some(Value::Array(tokens)) => return Ok(tokens.iter().filter_map(number).collect()),
            Some(token) if token.is_number() => return Ok(number(token).into_iter().collect()),
            _ => {}
        }
    }
    Ok(Vec::new())
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
mod tests {
    use super::*;

    /// The template of ChatML, as published models have it.
    const CHATML: &str = "{{ bos_token }}{% for message in messages %}\
        {% if message.role not in ['system', 'user', 'assistant'] %}{{ raise_exception('who is ' + message.role) }}{% endif %}\
        {{ '<|im_start|>' + message['role'] + '\n' + message['content'].strip() + '<|im_end|>' + '\n' }}{% endfor %}\
        {% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

    fn said(role: &'static str, content: &str) -> Message {
        let content = content.into();
        Message { role, content }
    }

    fn folder(config: &Value) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::write(
            folder.path().join("tokenizer_config.json"),
            config.to_string(),
        )
        .unwrap();
        folder
    }

    #[test]
    fn a_template_of_the_model_is_followed() {
        let config = serde_json::json!({
            "chat_template": CHATML, "bos_token": {"content": "<s>"}, "eos_token": null, "model_max_length": 100
        });
        let folder = folder(&config);
        let template = Template::of(folder.path()).unwrap().unwrap();
        let messages = [
            said("user", " Hello. "),
            said("assistant", "Hi!"),
            said("user", "Bye."),
        ];
        let expected = "<s><|im_start|>user\nHello.<|im_end|>\n<|im_start|>assistant\nHi!<|im_end|>\n<|im_start|>user\nBye.<|im_end|>\n\
            <|im_start|>assistant\n";
        assert_eq!(template.text(&messages).unwrap(), expected);
        let error = template
            .text(&[said("cat", "Meow.")])
            .unwrap_err()
            .to_string();
        assert!(error.contains("who is cat"), "{error}");
    }

    #[test]
    fn a_file_of_its_own_comes_first() {
        let folder = folder(
            &serde_json::json!({"chat_template": [{"name": "default", "template": "{{ messages|length }}"}]}),
        );
        let messages = [
            said("user", "Once"),
            said("assistant", "upon a"),
            said("user", "time"),
        ];
        let text = || {
            Template::of(folder.path())
                .unwrap()
                .unwrap()
                .text(&messages)
                .unwrap()
        };
        assert_eq!(text(), "3");
        fs::write(
            folder.path().join("chat_template.jinja"),
            "{{ messages[0].content }}",
        )
        .unwrap();
        assert_eq!(text(), "Once");
        let empty = tempfile::tempdir().unwrap();
        assert!(Template::of(empty.path()).unwrap().is_none());
    }

    #[test]
    fn what_transformers_adds_to_jinja_is_there() {
        let source = "{% generation %}{{ strftime_now('%Y')|length }}{%- endgeneration -%}{{ tools is none }}{{ documents is none }}";
        let folder = folder(&serde_json::json!({"chat_template": source}));
        fs::write(
            folder.path().join("special_tokens_map.json"),
            r#"{"bos_token": "<s>"}"#,
        )
        .unwrap();
        let template = Template::of(folder.path()).unwrap().unwrap();
        assert_eq!(template.text(&[]).unwrap(), "4TrueTrue");
        assert_eq!(template.tokens["bos_token"], "<s>");
        assert_eq!(
            without_generation_tags("{{ a }}{% if b %}{%+ generation %} c"),
            "{{ a }}{% if b %} c"
        );
    }

    #[test]
    fn a_broken_template_is_refused() {
        let folder = folder(&serde_json::json!({"chat_template": "{% for %}"}));
        let error = Template::of(folder.path()).unwrap_err().to_string();
        let start = format!(
            "the chat template of {}",
            folder.path().join("tokenizer_config.json").display()
        );
        assert!(error.starts_with(&start), "{error}");
    }

    #[test]
    fn a_model_may_have_several_end_tokens() {
        let folder = tempfile::tempdir().unwrap();
        assert!(end_tokens(folder.path()).unwrap().is_empty());
        fs::write(folder.path().join("config.json"), r#"{"eos_token_id": 2}"#).unwrap();
        assert_eq!(end_tokens(folder.path()).unwrap(), [2]);
        fs::write(
            folder.path().join("generation_config.json"),
            r#"{"eos_token_id": [3, 4]}"#,
        )
        .unwrap();
        assert_eq!(end_tokens(folder.path()).unwrap(), [3, 4]);
        fs::write(folder.path().join("generation_config.json"), "[]").unwrap();
        assert!(end_tokens(folder.path()).is_err());
    }
}
