//! Models in GGUF files, which llama.cpp's own converter has made of the small ones.

use std::{fs, path::PathBuf};

use burn::tensor::{Int, Tensor};
use burn_attn_models::{
    bert::{Bert, BertInput},
    language_model::LanguageModel,
    llama, pretrained, t5,
};
use burn_attn_tests::{
    compare::{assert_close_to_largest, error},
    devices,
    golden::{self, GoldenFile},
};
use serde_json::json;
use tempfile::TempDir;

use super::{folder, refused::copied};

fn golden(family: &str) -> PathBuf {
    golden::path("gguf").join(format!("{family}.gguf"))
}

/// The llama's queries and keys are in another order there.
#[test]
fn language_models_are_those_of_transformers() {
    for family in ["llama", "qwen2", "qwen3"] {
        // What the converter was given.
        let rotary = json!({"rope_theta": 500.0, "rope_type": "default"});
        let copy = copied(family, |fields| {
            fields.insert("rope_parameters".into(), rotary);
        });
        for (backend, device) in devices::cpu() {
            let logits = |model: LanguageModel| {
                let tokens = Tensor::<2, Int>::from_data([[3, 1, 2, 5, 11, 7]], &device);
                model.forward(tokens).into_data()
            };
            let expected = logits(llama::from_pretrained(copy.path(), &device).unwrap());
            let found = logits(LanguageModel::from_pretrained(golden(family), &device).unwrap());
            assert_eq!(found, expected, "{family} on {backend}");
        }
    }
}

/// Adds a number to the metadata of a file, and another one, so that tensors stay at multiples of 32 bytes.
pub(super) fn insert(bytes: &mut Vec<u8>, name: &str, value: u32) {
    let field = |name: &str, value: u32| {
        let len = (name.len() as u64).to_le_bytes();
        let (is_u32, value) = (4_u32.to_le_bytes(), value.to_le_bytes());
        [&len[..], name.as_bytes(), &is_u32, &value].concat()
    };
    let mut fields = field(name, value);
    let before = fields.len() + field("general.", 0).len();
    let filling = "x".repeat(before.next_multiple_of(32) - before);
    fields.extend(field(&format!("general.{filling}"), 0));
    bytes.splice(24..24, fields);
    let count = u64::from_le_bytes(bytes[16..24].try_into().expect("8 bytes"));
    bytes[16..24].copy_from_slice(&(count + 2).to_le_bytes());
}

/// A file of these bytes. It is deleted with its folder.
pub(super) fn written(bytes: Vec<u8>) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    fs::write(&path, bytes).unwrap();
    (folder, path)
}

/// As Qwen 3's embedding models say how their states are pooled.
#[test]
fn pooling_does_not_change_the_states() {
    let device = devices::any();
    for family in ["qwen2", "qwen3"] {
        let mut bytes = fs::read(golden(family)).unwrap();
        insert(&mut bytes, &format!("{family}.pooling_type"), 3);
        let (_folder, path) = written(bytes);
        let logits = |path: PathBuf| {
            let model = LanguageModel::from_pretrained(path, &device).expect("a model");
            let tokens = Tensor::<2, Int>::from_data([[3, 1, 2]], &device);
            model.forward(tokens).into_data()
        };
        assert_eq!(logits(path), logits(golden(family)));
    }
}

/// The scaled rotary positions of Llama 3.1 are a tensor there: one divisor for each pair.
#[test]
fn rotary_frequencies_are_read() {
    let tokens = GoldenFile::open("models/llama_values").data("tokens");
    for (backend, device) in devices::cpu() {
        let logits = |path: PathBuf| {
            let model = LanguageModel::from_pretrained(path, &device).expect("a model");
            let tokens = Tensor::<2, Int>::from_data(tokens.clone(), &device);
            model.forward(tokens).into_data()
        };
        let expected = logits(folder("llama"));
        let what = format!("llama3 on {backend}");
        assert_close_to_largest(&what, &logits(golden("llama3")), &expected, 1e-5, 0.0);
        let unscaled = logits(golden("llama"));
        assert!(error(&unscaled, &expected) > 1e-2, "the scaling is seen");
    }
    assert_eq!(
        refused("llama3", "rope_freqs.weight", "rope_freqa.weight"),
        "model.gguf: the weights do not fit the model: unexpected: rope_freqa.weight"
    );
}

#[test]
fn bert_is_that_of_transformers() {
    let device = devices::any();
    let states = |bert: Bert| {
        let tokens = Tensor::<2, Int>::from_data([[3, 1, 2, 5], [4, 22, 0, 0]], &device);
        bert.forward(BertInput::new(tokens).lengths(&[4, 2]))
            .narrow(1, 0, 2)
            .into_data()
    };
    let expected = states(Bert::from_pretrained(folder("bert"), &device).unwrap());
    let bert = Bert::from_pretrained(golden("bert"), &device).unwrap();
    assert!(bert.pooler.is_none());
    assert_eq!(states(bert), expected);
}

/// The error of a changed file; the same number of bytes stand in the place of others.
fn refused(family: &str, from: &str, to: &str) -> String {
    assert_eq!(from.len(), to.len());
    let mut bytes = fs::read(golden(family)).unwrap();
    let at = bytes
        .windows(from.len())
        .position(|window| window == from.as_bytes());
    let at = at.expect("the bytes to change");
    bytes[at..at + from.len()].copy_from_slice(to.as_bytes());
    let (_folder, path) = written(bytes);
    let error = match family {
        "bert" => Bert::from_pretrained(&path, &devices::any()).err(),
        _ => LanguageModel::from_pretrained(&path, &devices::any()).err(),
    };
    let error = error.expect("an error").to_string();
    error.replace(&path.display().to_string(), "model.gguf")
}

#[test]
fn what_is_not_known_is_refused_by_name() {
    assert_eq!(
        refused(
            "llama",
            "\u{5}\0\0\0\0\0\0\0llama",
            "\u{5}\0\0\0\0\0\0\0gemma"
        ),
        "model.gguf cannot be read as the configuration of a model: its architecture is \"gemma\", and GGUF files are read of bert, llama, \
         qwen2, qwen3"
    );
    assert_eq!(
        refused("llama", "llama.rope.freq_base", "llama.rope.freq_bass"),
        "model.gguf: the Llama family does not know llama.rope.freq_bass"
    );
    assert_eq!(
        refused("qwen2", "qwen2.block_count", "qwen2.block_cound"),
        "model.gguf has no field num_hidden_layers, which the Llama family needs"
    );
    assert_eq!(
        refused("bert", "bert.attention.causal", "bert.attention.casual"),
        "model.gguf: BERT does not know bert.attention.casual"
    );
    let tensor = refused("llama", "blk.1.ffn_gate.weight", "blk.1.ffn_gates.weigh");
    assert!(tensor.contains("blk.1.ffn_gates.weigh"), "{tensor}");
}

#[test]
fn another_file_or_family_is_refused() {
    let device = devices::any();
    let error = LanguageModel::from_pretrained(golden("bert"), &device).unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("model_type is \"bert\", but LanguageModel supports gpt2"),
        "{error}"
    );
    let error = t5::from_pretrained(golden("llama"), &device)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("model_type is \"llama\", but T5 supports \"t5\""),
        "{error}"
    );
    let config = folder("bert").join("config.json");
    let error = Bert::from_pretrained(&config, &device)
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        format!(
            "{} cannot be read as the configuration of a model: it is no GGUF file; a model of transformers is named by its folder",
            config.display()
        )
    );
}

#[test]
fn the_tokenizer_lies_beside_the_file() {
    let error = pretrained::tokenizer(golden("bert"))
        .unwrap_err()
        .to_string();
    let expected = golden("bert").with_file_name("tokenizer.json");
    assert!(
        error.starts_with(&expected.display().to_string()),
        "{error}"
    );
}
