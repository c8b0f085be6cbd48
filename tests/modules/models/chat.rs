//! Chat templates and end tokens: what transformers makes of the same files.

use std::fs;

use burn_attn_models::{
    chat::{ChatError, ChatModel, Conversation, Message, Template},
    generate::{GenerateOptions, generate},
    pretrained::{Tokenizer, end_tokens},
};
use burn_attn_tests::{devices, golden, sentence};
use serde::Serialize;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::{read_json, refused::copied, tokenizer::WORDS};

const TOKENIZER_CONFIG: &str = "tokenizer_config.json";

/// The template of ChatML, as published models have it.
const CHATML: &str = "{{ bos_token }}{% for message in messages %}\
    {% if message.role not in ['system', 'user', 'assistant'] %}{{ raise_exception('who is ' + message.role) }}{% endif %}\
    {{ '<|im_start|>' + message['role'] + '\n' + message['content'].strip() + '<|im_end|>' + '\n' }}{% endfor %}\
    {% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

fn with_config(config: &Value) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder to write to");
    write(&folder, TOKENIZER_CONFIG, &config.to_string());
    folder
}

/// The template of a folder that has one.
fn template(folder: &TempDir) -> Template {
    let template = Template::of(folder.path()).expect("readable");
    template.expect("a template")
}

fn write(folder: &TempDir, name: &str, text: &str) {
    fs::write(folder.path().join(name), text).expect("written");
}

/// The text of a template with these tokens.
fn text(
    source: &str,
    tokens: Map<String, Value>,
    messages: &[Message],
) -> Result<String, ChatError> {
    let folder = with_config(&tokens.into());
    write(&folder, "chat_template.jinja", source);
    let template = Template::of(folder.path())?.expect("a template");
    template.text(messages)
}

#[test]
fn a_template_of_the_model_is_followed() {
    let config = json!({
        "chat_template": CHATML, "bos_token": {"content": "<s>"}, "eos_token": null, "model_max_length": 100
    });
    let folder = with_config(&config);
    let template = template(&folder);
    let messages = [
        Message::new("user", " Hello. "),
        Message::new("assistant", "Hi!"),
        Message::new("user", "Bye."),
    ];
    let expected = "<s><|im_start|>user\nHello.<|im_end|>\n<|im_start|>assistant\nHi!<|im_end|>\n<|im_start|>user\nBye.<|im_end|>\n\
        <|im_start|>assistant\n";
    assert_eq!(template.text(&messages).expect("a text"), expected);
    let error = template.text(&[Message::new("cat", "Meow.")]).unwrap_err();
    assert!(error.to_string().contains("who is cat"), "{error}");
}

#[test]
fn the_template_in_a_separate_file_comes_first() {
    let config =
        json!({"chat_template": [{"name": "default", "template": "{{ messages|length }}"}]});
    let folder = with_config(&config);
    let messages = [
        Message::new("user", "Once"),
        Message::new("assistant", "upon a"),
        Message::new("user", "time"),
    ];
    let text = || template(&folder).text(&messages).expect("a text");
    assert_eq!(text(), "3");
    write(&folder, "chat_template.jinja", "{{ messages[0].content }}");
    assert_eq!(text(), "Once");
    let empty = tempfile::tempdir().expect("a folder");
    assert!(Template::of(empty.path()).expect("readable").is_none());
}

#[test]
fn what_transformers_adds_to_jinja_is_there() {
    let source = "{% generation %}{{ strftime_now('%Y')|length }}{%- endgeneration -%}{{ tools is none }}{{ documents is none }}{{ bos_token }}";
    let folder = with_config(&json!({"chat_template": source}));
    write(
        &folder,
        "special_tokens_map.json",
        r#"{"bos_token": "<s>"}"#,
    );
    let text = template(&folder).text(&[]);
    assert_eq!(text.expect("a text"), "4TrueTrue<s>");
}

/// As Qwen 3 reads `enable_thinking`, beside a text and an integer.
#[test]
fn a_template_gets_variables_under_free_names() {
    let source = "{{ messages|length }}{% if enable_thinking is defined and enable_thinking is false %} quiet{% endif %} \
        {{ effort | default('as ever') }} {{ (depth | default(0)) + 1 }}{{ bos_token }}";
    let folder = with_config(&json!({"chat_template": source, "bos_token": "<s>"}));
    let template = template(&folder);
    assert_eq!(template.text(&[]).expect("a text"), "0 as ever 1<s>");
    let told = template.clone().with_variable("enable_thinking", true);
    let told = told.and_then(|template| template.with_variable("enable_thinking", false));
    let told = told.and_then(|template| template.with_variable("effort", "low"));
    let told = told.and_then(|template| template.with_variable("depth", 7));
    let told = told.expect("variables").text(&[]);
    assert_eq!(told.expect("a text"), "0 quiet low 8<s>");
    for name in [
        "messages",
        "add_generation_prompt",
        "tools",
        "documents",
        "bos_token",
    ] {
        let refused = template.clone().with_variable(name, false);
        assert_eq!(
            refused.expect_err(name).to_string(),
            format!(
                "the chat template of {}: {name:?} cannot be a variable, because the template gets it anyway",
                folder.path().join(TOKENIZER_CONFIG).display()
            )
        );
    }
}

/// As Python reads the file, and writes a dict.
#[test]
fn ends_of_lines_and_the_order_of_fields_are_those_of_python() {
    #[derive(Serialize)]
    struct Function {
        r#type: &'static str,
        name: &'static str,
    }
    let source = "{{ tool | tojson }}\r\n\r\n{{ 'a\rb' }}\r\n";
    let folder = with_config(&json!({"chat_template": source}));
    let tool = Function {
        r#type: "function",
        name: "f",
    };
    let told = template(&folder).with_variable("tool", tool);
    let text = told.expect("a variable").text(&[]).expect("a text");
    assert_eq!(text, "{\"type\": \"function\", \"name\": \"f\"}\n\na\nb");
}

#[test]
fn a_broken_template_is_refused() {
    for (template, reason) in [
        (json!("{% for %}"), ""),
        (
            json!([{"name": "rag", "template": "{{ messages }}"}]),
            "none of its templates is named default",
        ),
    ] {
        let folder = with_config(&json!({ "chat_template": template }));
        let error = Template::of(folder.path()).unwrap_err().to_string();
        let path = folder.path().join(TOKENIZER_CONFIG);
        let start = format!("the chat template of {}: {reason}", path.display());
        assert!(error.starts_with(&start), "{error}");
    }
}

#[test]
fn the_end_tokens_of_all_files_end_a_text() {
    let folder = tempfile::tempdir().expect("a folder to write to");
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null, "pre_tokenizer": null,
        "post_processor": null, "decoder": null, "model": {"type": "WordLevel", "unk_token": "a", "vocab": {"a": 0, "<|im_end|>": 5}}
    });
    let tokenizer: Tokenizer = tokenizer.to_string().parse().expect("a tokenizer");
    let ends = || end_tokens(folder.path(), &tokenizer);
    let assert_ends = |expected: &[u32]| assert_eq!(ends().expect("readable"), expected);
    assert_ends(&[]);
    write(&folder, "config.json", r#"{"eos_token_id": 2}"#);
    assert_ends(&[2]);
    write(
        &folder,
        "generation_config.json",
        r#"{"eos_token_id": [3, 2]}"#,
    );
    assert_ends(&[2, 3]);
    for (eos, expected) in [
        (r#""<|im_end|>""#, &[2, 3, 5][..]),
        (r#"{"content": "<|im_end|>"}"#, &[2, 3, 5]),
        (r#""<another>""#, &[2, 3]),
        ("null", &[2, 3]),
    ] {
        let config = format!(r#"{{"eos_token": {eos}}}"#);
        write(&folder, TOKENIZER_CONFIG, &config);
        assert_ends(expected);
    }
    for (file, what) in [
        (
            "special_tokens_map.json",
            "the configuration of a tokenizer",
        ),
        (TOKENIZER_CONFIG, "the configuration of a tokenizer"),
        ("config.json", "the configuration of a model"),
        ("generation_config.json", "the settings of a generation"),
    ] {
        write(&folder, file, "[]");
        let refused = ends().expect_err("a list").to_string();
        let end = format!("{file} cannot be read as {what}: it is not a JSON object");
        assert!(refused.ends_with(&end), "{refused}");
    }
    let refused = end_tokens("/no/such/folder", &tokenizer).expect_err("there is none");
    assert_eq!(
        refused.to_string(),
        "/no/such/folder is not a folder, and no model on the Hub can have this name"
    );
}

#[test]
fn no_template_panics() {
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
        let _ = text(source, Map::new(), &[]);
    }
    for source in [
        "{{ 'a'.ljust(1000000000000000000) }}",
        "{{ 'a'.zfill(18446744073709551615) }}",
        "{{ '\t'.expandtabs(1000000000000000000) }}",
        "{{ [1] | tojson(indent=1000000000000000000) }}",
    ] {
        let refused = text(source, Map::new(), &[]).expect_err(source);
        let refused = refused.to_string();
        assert!(refused.contains("is more than 65536"), "{refused}");
    }
}

/// Brackets around operands of `%`, whose calls begin and end at the brackets.
#[test]
fn remainders_of_numbers_in_brackets() {
    for (source, expected) in [
        ("{{ 1 + (7) % 5 % 3 }}", "3"),
        ("{{ 17 % (10) % 4 }}", "3"),
        ("{{ ((17) % (10)) % (4) }}", "3"),
        ("{{ -(17 % 10) }}", "-7"),
    ] {
        assert_eq!(
            text(source, Map::new(), &[]).expect(source),
            expected,
            "{source}"
        );
    }
}

/// What transformers makes of templates, by `tests/golden/chat/make_templates.py`.
#[test]
fn templates_give_the_text_of_transformers() {
    let file = read_json(&golden::path("chat").join("templates.json"));
    let messages = file["messages"].clone();
    let messages: Vec<Message> = serde_json::from_value(messages).expect("messages");
    let tokens = file["tokens"].as_object().expect("tokens");
    let mut wrong = Vec::new();
    for case in file["templates"].as_array().expect("a list") {
        let source = case["template"].as_str().expect("a text");
        match (
            text(source, tokens.clone(), &messages),
            case["text"].as_str(),
        ) {
            (Ok(text), Some(expected)) if text == expected => {}
            (Err(_), None) => {}
            (text, expected) => wrong.push(format!("{source}\n{text:?}\n{expected:?}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// A folder with all files: the answer ends with the first end token, which is no part of what goes on.
#[test]
fn a_model_with_its_files_answers_and_stops() {
    let device = devices::any();
    let copy = copied("llama", |_| {});
    write(&copy, "tokenizer.json", WORDS);
    let options = GenerateOptions::new(5);
    let model = ChatModel::from_pretrained(copy.path(), &device).expect("a model");
    let alone = generate(&model.model, model.model.start(1), &[vec![1, 2]], &options);
    let first = alone.expect("tokens")[0].tokens[0];
    assert!(matches!(
        model.conversation(5).with_system("queries"),
        Err(ChatError::NoTemplate)
    ));

    let ends = json!({"eos_token_id": [first, 1_000_000]}).to_string();
    write(&copy, "generation_config.json", &ends);
    write(
        &copy,
        "chat_template.jinja",
        "{% for message in messages %}{{ message.content }} {% endfor %}and",
    );
    let model = ChatModel::from_pretrained(copy.path(), &device).expect("a model");
    // The model cannot write a token outside its vocabulary.
    assert!(model.end_tokens.contains(&first) && !model.end_tokens.contains(&1_000_000));
    let mut conversation = model.conversation(5);
    let turn = conversation.say("keys", &options, |_| true);
    let turn = turn.expect("an answer");
    assert_eq!((turn.read, turn.written), (2, 1));
    assert_eq!((turn.answer.as_str(), conversation.tokens().len()), ("", 2));

    // A later system message comes before the turns.
    let mut conversation = conversation.with_system("values").expect("a template");
    conversation
        .say("queries", &options, |_| true)
        .expect("an answer");
    assert_eq!(conversation.tokens()[..4], [4, 1, 3, 2]);

    let mut tokenizer = model.tokenizer.clone();
    tokenizer.with_padding(Some(Default::default()));
    assert_eq!(
        sentence(|| Conversation::new(&model.model, &tokenizer, None, 5)),
        "Conversation: the tokenizer truncates or pads texts"
    );
}
