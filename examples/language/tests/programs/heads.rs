//! Encoders with heads as `transformers` saves them, which `golden/make_heads.py` has made with what they compute, and as it begins to train them.

use std::{fs, path::PathBuf};

use burn::{
    nn::DropoutConfig,
    tensor::{Device, Int, Tensor, activation::log_softmax},
};
use burn_attn::{dropout, with_dropout_seed};
use burn_attn_models::{bert::BertInput, tokens::padded};
use language::{
    encoder::{Encoder, Task},
    fine_tuning::{Model, Objective},
    question_answering::QuestionAnswering,
    sentiment::Sentiment,
    tokens::Tokenizer,
};
use serde_json::{Value, json};

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
    let vocabulary = |tokenizer: &Tokenizer| tokenizer.tokenizer.get_vocab(true);
    assert_eq!(vocabulary(&same), vocabulary(&tokenizer));
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
    let encoder = loaded("reader", QuestionAnswering::TASK, &device);
    let golden = computed();
    // Both texts are passages as far as they go.
    let mut passages = vec![0.0f32; 10];
    passages.extend([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1e9, -1e9, -1e9, -1e9]);
    let passages = Tensor::<1>::from_data(passages.as_slice(), &device).reshape([2, 10]);
    let found = Model::<QuestionAnswering>::new(encoder).forward(input(&golden, &device), passages);
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
    let encoder = loaded("scorer", Sentiment::TASK, &device);
    let golden = computed();
    let found = Model::<Sentiment>::new(encoder).forward(input(&golden, &device));
    let expected = numbers(&golden["scores"]);
    let expected = Tensor::<1>::from_data(expected.as_slice(), &device);
    assert_close(found.unsqueeze(), expected.unsqueeze());
}

/// A small encoder with a new head, and these fields in its configuration.
fn with_new_head(task: Task, albert: bool, fields: Value) -> Result<Encoder, String> {
    let folder = tempfile::tempdir().unwrap();
    match albert {
        true => small::albert(folder.path()),
        false => small::bert(folder.path()),
    }
    let path = folder.path().join("config.json");
    let mut config: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    for (field, value) in fields.as_object().unwrap() {
        config[field] = value.clone();
    }
    fs::write(&path, config.to_string()).unwrap();
    let device = Device::default().autodiff();
    match Encoder::with_new_head(folder.path(), task, &device) {
        Ok((encoder, _)) => Ok(encoder),
        Err(error) => Err(error
            .to_string()
            .replacen(folder.path().to_str().unwrap(), "FOLDER", 1)),
    }
}

#[test]
fn a_new_head_is_initialised_as_in_transformers() {
    for (fields, std) in [
        (json!({}), 0.02),
        (json!({"initializer_range": 0.5}), 0.5),
        (json!({"initializer_range": 0}), 0.0),
    ] {
        let encoder = with_new_head(QuestionAnswering::TASK, false, fields).unwrap();
        let bias = encoder.head.bias.as_ref().unwrap().val().into_data();
        assert_eq!(bias.iter::<f32>().collect::<Vec<_>>(), [0.0, 0.0]);
        let weight = encoder.head.weight.val().into_data();
        let weight: Vec<f32> = weight.iter().collect();
        assert_eq!(weight.len(), 48);
        let squares = weight.iter().map(|weight| f64::from(weight * weight));
        let found = (squares.sum::<f64>() / 48.0).sqrt();
        // Six times the deviation of such a sample's.
        assert!((found - std).abs() <= 0.6 * std, "{found}, not {std}");
    }
}

/// The dropout of `BertForSequenceClassification` and `AlbertForSequenceClassification`; their classes for answers have none.
#[test]
fn a_head_drops_what_it_reads_of_a_pooled_vector() {
    let without = json!({"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0});
    let fields = |field: &str, value: Value| {
        let mut fields = without.clone();
        fields[field] = value;
        fields
    };
    for (albert, fields, expected) in [
        (false, fields("classifier_dropout", json!(0.5)), 0.5),
        (false, fields("classifier_dropout", json!(null)), 0.0),
        (false, json!({"hidden_dropout_prob": 0.25}), 0.25),
        (false, json!({}), 0.1),
        (true, fields("classifier_dropout_prob", json!(0.5)), 0.5),
        (true, without.clone(), 0.1),
    ] {
        let encoder = with_new_head(Sentiment::TASK, albert, fields.clone()).unwrap();
        assert_eq!(encoder.dropout.prob, expected, "{fields}");
        let reader = with_new_head(QuestionAnswering::TASK, albert, fields).unwrap();
        assert_eq!(reader.dropout.prob, 0.0);
    }

    let encoder = with_new_head(
        Sentiment::TASK,
        false,
        fields("classifier_dropout", json!(0.5)),
    );
    let (encoder, device) = (encoder.unwrap(), Device::default().autodiff());
    let model = Model::<Sentiment>::new(encoder);
    let tokens = || Tensor::<2, Int>::from_data([[3, 5, 6, 7, 1], [3, 8, 9, 5, 1]], &device);
    let found = with_dropout_seed(7, || model.forward(BertInput::new(tokens())));
    let Encoder { bert, head, .. } = &model.encoder;
    let pooled = bert.pool(bert.forward(BertInput::new(tokens())));
    let whole = head.forward(pooled.clone());
    let half = DropoutConfig::new(0.5).init();
    let expected = head.forward(with_dropout_seed(7, || dropout(&half, pooled)));
    let numbers = |scores: Tensor<2>| -> Vec<f32> { scores.into_data().iter().collect() };
    let found = numbers(found.unsqueeze_dim(1));
    assert_eq!(found, numbers(expected));
    assert_ne!(found, numbers(whole));
}

#[test]
fn a_configuration_of_no_head_is_refused() {
    for (field, value, range) in [
        ("classifier_dropout", json!(1.5), "0 to below 1"),
        ("classifier_dropout", json!("no"), "0 to below 1"),
        ("initializer_range", json!(-0.5), "0 on"),
    ] {
        let refused = with_new_head(Sentiment::TASK, false, json!({field: value}));
        let sentence = format!("FOLDER: {field} must be a number from {range}, got {value}");
        assert_eq!(refused.err(), Some(sentence));
    }
}
