//! Templates and end tokens, and what transformers makes of the same templates.

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
fn the_end_tokens_of_all_files_end_a_text() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let tokenizer = serde_json::json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null, "pre_tokenizer": null,
        "post_processor": null, "decoder": null, "model": {"type": "WordLevel", "unk_token": "a", "vocab": {"a": 0, "<|im_end|>": 5}}
    });
    let tokenizer: Tokenizer = tokenizer.to_string().parse().unwrap();
    let ends = || end_tokens(folder.path(), &tokenizer);
    assert!(ends().unwrap().is_empty());
    write("config.json", r#"{"eos_token_id": 2}"#);
    assert_eq!(ends().unwrap(), [2]);
    write("generation_config.json", r#"{"eos_token_id": [3, 2]}"#);
    assert_eq!(ends().unwrap(), [2, 3]);
    for (eos, expected) in [
        (r#""<|im_end|>""#, &[2, 3, 5][..]),
        (r#"{"content": "<|im_end|>"}"#, &[2, 3, 5]),
        (r#""<another>""#, &[2, 3]),
        ("null", &[2, 3]),
    ] {
        write(TOKENIZER_CONFIG, &format!(r#"{{"eos_token": {eos}}}"#));
        assert_eq!(ends().unwrap(), expected, "{eos}");
    }
    write(TOKENIZER_CONFIG, "{}");
    write("special_tokens_map.json", r#"{"eos_token": "<|im_end|>"}"#);
    assert_eq!(ends().unwrap(), [2, 3, 5]);
    write("generation_config.json", "[]");
    assert!(ends().is_err());
}

#[test]
fn no_template_breaks_the_program() {
    for source in [
        "{%}",
        "{%",
        "{",
        "{{",
        "{{ 猫",
        "{% '猫",
        "{{}}",
        "{{-}}",
        "{{--}}",
        "{%%}",
        "{%-%}",
        "{#",
        "{#}",
        "{{ % }}",
        "{{ 猫 % }}",
        "{{ 1 % (2 }}",
        "{% raw %}",
        "{% raw %}{% endraw",
        "{{ '%' % }}",
        "{{ ) % ( }}",
        "{% generation",
        "é{é",
        "{{ 'a' % 'b",
        "{{ 1 % 1 % }}",
    ] {
        let template = Template::compile("a.jinja".into(), source.into(), Map::new());
        let _ = template.and_then(|template| template.text(&[]));
    }
}

/// What transformers makes of templates, by `tests/golden/make_templates.py`.
#[test]
fn templates_give_the_text_of_transformers() {
    let golden = include_str!("../../tests/golden/templates.json");
    let golden: Value = serde_json::from_str(golden).unwrap();
    let said = golden["messages"].as_array().unwrap().iter();
    let roles = ["system", "user", "assistant"];
    let messages: Vec<Message> = said
        .map(|message| Message {
            role: roles
                .into_iter()
                .find(|role| message["role"] == *role)
                .unwrap(),
            content: message["content"].as_str().unwrap().into(),
        })
        .collect();
    let tokens = golden["tokens"].as_object().unwrap();
    let mut wrong = Vec::new();
    for case in golden["templates"].as_array().unwrap() {
        let source = case["template"].as_str().unwrap();
        let template = Template::compile("a.jinja".into(), source.into(), tokens.clone());
        let text = template.and_then(|template| template.text(&messages));
        match (text, case["text"].as_str()) {
            (Ok(text), Some(expected)) if text == expected => {}
            (Err(_), None) => {}
            (text, expected) => wrong.push(format!("{source}\n{text:?}\n{expected:?}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
