//! Folders that cannot become a model, and the one thing that is wrong with them.

use std::{fs, path::Path};

use burn_attn_models::{bert::Bert, pretrained::PretrainedError};
use serde_json::{Value, json};

use super::folder;
use crate::devices;

/// A copy of a BERT's folder whose configuration was changed.
fn changed(change: impl FnOnce(&mut serde_json::Map<String, Value>)) -> Result<Bert, String> {
    let copy = tempfile::tempdir().expect("a folder");
    let original = folder("bert");
    fs::copy(
        original.join("model.safetensors"),
        copy.path().join("model.safetensors"),
    )
    .expect("copied");
    let text = fs::read_to_string(original.join("config.json")).expect("read");
    let mut config: Value = serde_json::from_str(&text).expect("JSON");
    change(config.as_object_mut().expect("an object"));
    fs::write(copy.path().join("config.json"), config.to_string()).expect("written");
    from(copy.path())
}

fn from(folder: &Path) -> Result<Bert, String> {
    let loaded = Bert::from_pretrained(folder, &devices::any());
    let shown = folder.join("config.json").display().to_string();
    loaded.map_err(|error: PretrainedError| error.to_string().replace(&shown, "config.json"))
}

#[track_caller]
fn assert_refused(change: impl FnOnce(&mut serde_json::Map<String, Value>), expected: &str) {
    assert_eq!(changed(change).expect_err("it is refused"), expected);
}

#[test]
fn one_sentence_names_the_field() {
    assert!(changed(|_| {}).is_ok());
    let set = |field: &'static str, value: Value| {
        move |config: &mut serde_json::Map<String, Value>| {
            config.insert(field.into(), value);
        }
    };
    assert_refused(
        set("position_embedding_type", json!("relative_key")),
        r#"config.json: position_embedding_type is "relative_key", but BERT supports "absolute""#,
    );
    assert_refused(
        set("hidden_act", json!("mish")),
        r#"config.json: hidden_act is "mish", but BERT supports gelu, gelu_new, gelu_pytorch_tanh, relu"#,
    );
    assert_refused(
        set("embedding_size", json!(128)),
        "config.json: BERT does not know embedding_size",
    );
    assert_refused(
        set("hidden_size", json!(-12)),
        "config.json: hidden_size is -12, but BERT supports a whole number",
    );
    assert_refused(
        set("num_attention_heads", json!(5)),
        "config.json: BertConfig: d_model 12 is not divisible by n_heads 5",
    );
    assert_refused(
        |config| {
            config.remove("hidden_size");
        },
        "config.json has no field hidden_size, which BERT needs",
    );
    assert_refused(
        set("model_type", json!("roberta")),
        r#"config.json: model_type is "roberta", but BERT supports "bert""#,
    );
}

#[test]
fn weights_of_another_size() {
    let error = changed(|config| {
        config.insert("intermediate_size".into(), json!(19));
    });
    let error = error.expect_err("it is refused");
    assert!(
        error.contains("encoder.layer.0.intermediate.dense.weight"),
        "{error}"
    );
}

#[test]
fn a_folder_of_nothing() {
    let empty = tempfile::tempdir().expect("a folder");
    let error = from(empty.path()).expect_err("it is refused");
    assert!(
        error.starts_with("config.json cannot be read as the configuration of a model: "),
        "{error}"
    );
    fs::write(empty.path().join("config.json"), "[1, 2]").expect("written");
    assert_eq!(
        from(empty.path()).expect_err("it is refused"),
        "config.json cannot be read as the configuration of a model: it is no JSON object"
    );
}
