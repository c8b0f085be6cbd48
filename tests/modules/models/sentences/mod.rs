//! Sentence encoders: the vectors of the Python library `sentence-transformers`.

mod gguf;
mod refused;

use std::fs;

use burn::tensor::{DType, FloatDType, TensorData};
use burn_attn_models::{
    pretrained::LoadOptions,
    sentences::{Prompt, SentenceEncoder},
};
use burn_attn_tests::{compare::assert_close_to_largest, devices, golden};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{folder, read_json};

/// Largest difference, relative to the largest number of the vectors.
const TOLERANCE: f64 = 1e-5;
/// Names of the kinds of texts.
const KINDS: [(&str, Prompt); 3] = [
    ("text", Prompt::Text),
    ("query", Prompt::Query),
    ("document", Prompt::Document),
];

fn golden_models() -> Value {
    read_json(&golden::path("sentences").join("models.json"))
}

/// The folder of a model, and the names of its files.
pub fn assembled(name: &str) -> (TempDir, Vec<String>) {
    let copy = tempfile::tempdir().expect("a folder");
    let mut names = Vec::new();
    let mut add = |name: String, content: Vec<u8>| {
        let path = copy.path().join(&name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, content).expect("written");
        names.push(name);
    };
    for file in ["config.json", "model.safetensors"] {
        add(
            file.into(),
            fs::read(folder("bert").join(file)).expect("read"),
        );
    }
    let sentences = golden::path("sentences");
    let tokenizer = fs::read(sentences.join("tokenizer.json")).expect("read");
    add("tokenizer.json".into(), tokenizer);
    let dense = fs::read(sentences.join("dense.safetensors")).expect("read");
    let models = golden_models();
    for (file, content) in models["models"][name].as_object().expect("a model") {
        match file.as_str() {
            "vectors" => {}
            "dense" => {
                for (below, prefix) in content.as_object().expect("folders") {
                    let prefix = prefix.as_str().expect("a name");
                    add(
                        format!("{below}/model.safetensors"),
                        below_prefix(&dense, prefix),
                    );
                }
            }
            file => add(file.into(), content.to_string().into_bytes()),
        }
    }
    (copy, names)
}

/// The tensors below a prefix, named without it, which share the bytes of the others.
fn below_prefix(file: &[u8], prefix: &str) -> Vec<u8> {
    let len = u64::from_le_bytes(file[..8].try_into().expect("8 bytes")) as usize;
    let header: Value = serde_json::from_slice(&file[8..8 + len]).expect("JSON");
    let mut bytes = Vec::new();
    let mut kept = serde_json::Map::new();
    for (name, tensor) in header.as_object().expect("tensors") {
        let Some(short) = name.strip_prefix(&format!("{prefix}.")) else {
            continue;
        };
        let at = |end: usize| tensor["data_offsets"][end].as_u64().expect("a number") as usize;
        let start = bytes.len();
        bytes.extend(&file[8 + len..][at(0)..at(1)]);
        let mut tensor = tensor.clone();
        tensor["data_offsets"] = json!([start, bytes.len()]);
        kept.insert(short.into(), tensor);
    }
    let header = Value::from(kept).to_string().into_bytes();
    [&(header.len() as u64).to_le_bytes()[..], &header, &bytes].concat()
}

/// Compares the vectors of all kinds of texts with those of a model.
pub fn assert_vectors(encoder: &SentenceEncoder, name: &str) {
    let models = golden_models();
    let texts: Vec<String> = serde_json::from_value(models["texts"].clone()).expect("texts");
    let expected = models["models"][name]["vectors"]
        .as_object()
        .expect("vectors");
    for (kind, prompt) in KINDS {
        let Some(expected) = expected.get(kind) else {
            continue;
        };
        let vectors = encoder.encode(&texts, prompt).expect("vectors");
        assert_rows(
            &format!("{name}, {kind}"),
            vectors.into_data(),
            expected.clone(),
        );
    }
}

fn assert_rows(what: &str, found: TensorData, expected: Value) {
    let rows: Vec<Vec<f64>> = serde_json::from_value(expected).expect("rows");
    let shape = [rows.len(), rows[0].len()];
    let expected = TensorData::new(rows.concat(), shape);
    assert_eq!(found.shape(), expected.shape(), "{what}");
    assert_close_to_largest(what, &found, &expected, TOLERANCE, 0.0);
}

#[test]
fn vectors_are_those_of_sentence_transformers() {
    let models = golden_models();
    let models = models["models"].as_object().expect("models");
    assert_eq!(models.len(), 13);
    for name in models.keys() {
        let (copy, _) = assembled(name);
        for (backend, device) in devices::cpu() {
            let encoder = SentenceEncoder::from_pretrained(copy.path(), &device);
            let encoder = encoder.unwrap_or_else(|error| panic!("{name} on {backend}: {error}"));
            assert_vectors(&encoder, name);
            let none = encoder.encode(&[""; 0], Prompt::Text).expect("vectors");
            assert_eq!(none.dims(), [0, encoder.width()]);
        }
    }
}

#[test]
fn no_texts_have_the_dtype_of_texts() {
    let (copy, _) = assembled("mean");
    let options = LoadOptions::new(&devices::any()).dtype(FloatDType::BF16);
    let encoder = SentenceEncoder::from_pretrained(copy.path(), options).expect("a model");
    let dtypes = [&[][..], &["cat"]].map(|texts: &[&str]| {
        let vectors = encoder.encode(texts, Prompt::Text).expect("vectors");
        vectors.dtype()
    });
    assert_eq!(dtypes, [DType::BF16; 2]);
}

#[test]
fn limits_are_where_every_version_has_them() {
    let limits = [
        ("mean", 11),
        ("old_limit", 7),
        ("new_limit", 5),
        ("other_name", 5),
        ("saved", 6),
        ("plain", 7),
    ];
    for (name, limit) in limits {
        let (copy, _) = assembled(name);
        let encoder = SentenceEncoder::from_pretrained(copy.path(), &devices::any());
        let encoder = encoder.expect("a model");
        assert_eq!(encoder.max_len(), limit, "{name}");
        let tokens = encoder.tokens(&"cat ".repeat(13), Prompt::Text);
        let tokens = tokens.expect("tokens");
        assert_eq!(tokens.len(), limit);
        assert_eq!(tokens.get_ids().last(), Some(&3), "it ends as all texts do");
    }
}
