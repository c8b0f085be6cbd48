//! The figures of a run as JSON, and its translations as lines.

use super::*;
use crate::cli::TrainArgs;
use burn_attn_models::train::Accuracy;

#[test]
fn a_line_of_translations_has_the_sentence_and_all_its_references() {
    let example = Example {
        source: "Go.".into(),
        references: vec!["Ve.".into(), "Vete.".into()],
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("translations.tsv");
    write_translations(&path, &[example], &["Ve\ta\ncasa.".into()]).unwrap();
    let written = std::fs::read_to_string(&path).unwrap();
    assert_eq!(written, "Go.\tVe a casa.\tVe.\tVete.\n");
}

#[test]
fn the_names_in_the_json_are_fixed() {
    let score = Score {
        sentences: 2,
        exact: 0.5,
        bleu: 12.5,
    };
    let config = RunConfig::new(&TrainArgs::default()).unwrap();
    let point = CurvePoint {
        epoch: 1,
        step: 9,
        train: 2.0,
        validation: 1.5,
        train_accuracy: Accuracy::default(),
        validation_accuracy: Accuracy {
            right: 3,
            tokens: 4,
        },
    };
    let scores = Scores {
        held_out: score.clone(),
        combinations: Some(score),
        translations: Vec::new(),
    };
    let state = State {
        seconds: 1.0,
        tokens: 2,
        step: 9,
        curve: vec![point],
        ..State::default()
    };
    let report = Report {
        tested_on: "test.tsv",
        scores: &scores,
        checkpoint: "epoch-0001",
        beam: 4,
        state: &state,
        parameters: 3,
        device: "flex",
        config: &config,
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.json");
    report.write(&path).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(json["held_out"]["exact"], 0.5);
    assert_eq!(json["held_out"]["bleu"], 12.5);
    assert_eq!(json["combinations"]["exact"], 0.5);
    assert_eq!(json["train"]["seconds"], 1.0);
    assert_eq!(json["train"]["tokens_per_second"], 2.0);
    assert_eq!(json["model"]["parameters"], 3);
    assert_eq!(json["device"], "flex");
    assert_eq!(json["checkpoint"], "epoch-0001");
    assert_eq!(json["tested_on"], "test.tsv");
    assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(json["beam"], 4);
    assert_eq!(json["train"]["steps"], 9);
    let point = &json["train"]["curve"][0];
    assert_eq!(point["train_loss"], 2.0);
    assert_eq!(point["train_accuracy"], serde_json::Value::Null);
    assert_eq!(point["validation_accuracy"], 0.75);
    assert_eq!(json["config"]["seed"], 1);
    assert_eq!(json["config"]["model"]["d_model"], 96);
}
