//! The golden cases that `golden/bleu.py` wrote with sacreBLEU itself.

use serde_json::Value;

use super::{corpus_bleu, tokenize::tokenize_13a};

fn golden() -> Value {
    serde_json::from_str(include_str!("../../golden/bleu.json")).expect("golden/bleu.json is JSON")
}

fn strings(value: &Value) -> Vec<String> {
    serde_json::from_value(value.clone()).expect("an array of strings")
}

#[test]
fn agrees_with_sacrebleu() {
    let golden = golden();
    let corpora = golden["corpora"].as_array().expect("corpora");
    assert!(corpora.len() >= 40, "{} golden corpora", corpora.len());
    for corpus in corpora {
        let hypotheses = strings(&corpus["hypotheses"]);
        let references: Vec<Vec<String>> = corpus["references"]
            .as_array()
            .expect("references")
            .iter()
            .map(strings)
            .collect();
        let expected = corpus["bleu"].as_f64().expect("bleu");
        let actual = corpus_bleu(&hypotheses, &references);
        assert!(
            (actual - expected).abs() < 1e-9,
            "{}: {actual}, sacreBLEU {expected}",
            corpus["name"]
        );
    }
}

#[test]
fn tokenizes_as_sacrebleu() {
    let golden = golden();
    let segments = golden["segments"].as_array().expect("segments");
    assert!(segments.len() >= 100, "{} golden segments", segments.len());
    for segment in segments {
        let text = segment["text"].as_str().expect("text");
        assert_eq!(tokenize_13a(text), strings(&segment["tokens"]), "{text:?}");
    }
}

#[test]
fn an_empty_corpus_scores_zero() {
    assert_eq!(corpus_bleu(&[], &[]), 0.0);
}

#[test]
#[should_panic(expected = "one list of references per hypothesis")]
fn refuses_missing_references() {
    corpus_bleu(&["The cat eats.".to_owned()], &[]);
}

#[test]
#[should_panic(expected = "has no reference")]
fn refuses_an_empty_list_of_references() {
    corpus_bleu(&["The cat eats.".to_owned()], &[vec![]]);
}
