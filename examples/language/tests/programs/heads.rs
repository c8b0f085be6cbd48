//! Encoders with heads as `transformers` saves them; `golden/make_heads.py` has made them, and what they compute.

use std::{fs, path::PathBuf};

use burn::tensor::{Device, Int, Tensor, activation::log_softmax};
use burn_attn_models::{bert::BertInput, tokens::padded};
use language::{
    encoder::{Encoder, Task},
    sentiment::{self, SentimentModel},
    span_reader::{self, SpanReader},
};
use serde_json::Value;

use super::small;

fn golden() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/heads")
}

fn computed() -> Value {
    serde_json::from_str(&fs::read_to_string(golden().join("computed.json")).unwrap()).unwrap()
}

/// The model of a golden folder.
fn loaded(name: &str, task: Task, device: &Device) -> Encoder {
    let folder = tempfile::tempdir().unwrap();
    for file in ["config.json", "model.safetensors"] {
        fs::copy(golden().join(name).join(file), folder.path().join(file)).unwrap();
    }
    small::tokenizer(folder.path(), true);
    let (encoder, tokenizer) = Encoder::load(folder.path(), task, device).unwrap();

    // What is saved is loaded again, with the same bits.
    let again = tempfile::tempdir().unwrap();
    encoder.save(folder.path(), task, again.path()).unwrap();
    let (second, same) = Encoder::load(again.path(), task, device).unwrap();
    assert_eq!(same.get_vocab(true), tokenizer.get_vocab(true));
    let head = |encoder: &Encoder| encoder.head.weight.val().into_data();
    head(&second).assert_eq(&head(&encoder), true);
    let table = |encoder: &Encoder| encoder.bert.tokens.weight.val().into_data();
    table(&second).assert_eq(&table(&encoder), true);
    encoder
}

fn rows(value: &Value) -> Vec<Vec<u32>> {
    serde_json::from_value(value.clone()).unwrap()
}

fn numbers(value: &Value) -> Vec<f32> {
    match value.as_array() {
        Some(values) => values.iter().flat_map(numbers).collect(),
        None => vec![value.as_f64().unwrap() as f32],
    }
}

fn input(golden: &Value, device: &Device) -> BertInput {
    let (tokens, _) = padded(&rows(&golden["tokens"]), device);
    let (segments, _): (Tensor<2, Int>, _) = padded(&rows(&golden["segments"]), device);
    BertInput::new(tokens).segments(segments).lengths(&[10, 6])
}

fn assert_close(found: Tensor<2>, expected: Tensor<2>) {
    let largest = (found - expected).abs().max().into_scalar::<f32>();
    // The logits are as large as 20, and f64 made the expected ones.
    assert!(largest < 5e-4, "{largest}");
}

#[test]
fn a_reader_of_transformers_computes_the_same() {
    let device = Device::default();
    let encoder = loaded("reader", span_reader::TASK, &device);
    let golden = computed();
    // Both texts are passages as far as they go.
    let mut passages = vec![0.0f32; 10];
    passages.extend([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1e9, -1e9, -1e9, -1e9]);
    let passages = Tensor::<1>::from_data(passages.as_slice(), &device).reshape([2, 10]);
    let found = SpanReader { encoder }.forward(input(&golden, &device), passages);
    for (at, name) in ["starts", "ends"].into_iter().enumerate() {
        let logits = numbers(&golden[name]);
        let logits = Tensor::<1>::from_data(logits.as_slice(), &device).reshape([2, 10]);
        let found: Tensor<2> = found.clone().narrow(1, at, 1).squeeze_dim(1);
        for (row, len) in [(0, 10), (1, 6)] {
            let of_row = |x: Tensor<2>| x.narrow(0, row, 1).narrow(1, 0, len);
            let expected = log_softmax(of_row(logits.clone()), 1);
            assert_close(of_row(found.clone()), expected);
        }
    }
}

#[test]
fn a_classifier_of_transformers_computes_the_same() {
    let device = Device::default();
    let encoder = loaded("scorer", sentiment::TASK, &device);
    let golden = computed();
    let found = SentimentModel { encoder }.forward(input(&golden, &device));
    let expected = numbers(&golden["scores"]);
    let expected = Tensor::<1>::from_data(expected.as_slice(), &device);
    assert_close(found.unsqueeze(), expected.unsqueeze());
}
