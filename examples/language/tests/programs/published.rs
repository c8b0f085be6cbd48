//! The programs with the models that they are made for, where `cargo xtask fetch` has put them; `golden/make_golden.py` has made the values.

use std::{fs, path::PathBuf};

use serde_json::Value;

use super::{args, printed};

/// The folder of the repository, if these weights are there.
fn fetched(name: &str) -> Option<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    if root.join("target/weights").join(name).is_dir() {
        return Some(root);
    }
    eprintln!("skipped: weights not fetched (cargo xtask fetch {name})");
    None
}

fn golden(name: &str) -> Value {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn texts(value: &Value) -> Vec<&str> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|text| text.as_str().unwrap())
        .collect()
}

/// The cosines of transformers, in f64.
#[test]
fn minilm_compares_texts() {
    let Some(root) = fetched("minilm") else {
        return;
    };
    let golden = golden("cosines.json");
    let args = [&["compare"], &texts(&golden["texts"])[..]].concat();
    let text = printed(env!("CARGO_BIN_EXE_search"), &root, &args, "");
    let expected = golden["cosines"].as_array().unwrap();
    assert_eq!(text.lines().count(), expected.len());
    for (line, expected) in text.lines().zip(expected) {
        let found: f64 = line.split('\t').next().unwrap().parse().unwrap();
        assert!(
            (found - expected.as_f64().unwrap()).abs() < 1e-5,
            "{line}, not {expected}"
        );
    }
}

/// The maps of rxnmapper's own code. Its writer leaves out brackets around the last branch.
#[test]
fn rxnmapper_numbers_atoms() {
    let Some(root) = fetched("rxnmapper") else {
        return;
    };
    let golden = golden("reactions.json");
    let golden = golden.as_array().unwrap();
    let reactions: Vec<&str> = golden
        .iter()
        .map(|made| made["reaction"].as_str().unwrap())
        .collect();
    let text = printed(env!("CARGO_BIN_EXE_reactions"), &root, &reactions, "");
    assert_eq!(text.lines().count(), golden.len());
    let without_branches = |text: &str| text.replace(['(', ')'], "");
    for (line, made) in text.lines().zip(golden) {
        let (mapped, confidence) = line.split_once('\t').unwrap();
        let expected = made["mapped"].as_str().unwrap();
        assert_eq!(without_branches(mapped), without_branches(expected));
        let (found, expected) = (
            confidence.parse::<f64>().unwrap(),
            made["confidence"].as_f64().unwrap(),
        );
        assert!((found - expected).abs() < 1e-5, "{line}, not {expected}");
    }
}

/// The titles of transformers, greedy and with four beams.
#[test]
fn t5_writes_titles() {
    let Some(root) = fetched("t5") else {
        return;
    };
    for made in golden("titles.json").as_array().unwrap() {
        for (name, beam) in [("greedy", "1"), ("beam 4", "4")] {
            let text = made["text"].as_str().unwrap();
            let summarize = env!("CARGO_BIN_EXE_summarize");
            let title = printed(summarize, &root, &["--beam", beam], text);
            assert_eq!(title.trim(), made[name].as_str().unwrap(), "{text}");
        }
    }
}

/// Greedy tokens of the tested prompt of glassllm; each step of its trace is compared in `tests/modules/models/real.rs`.
#[test]
fn glassllm_goes_on() {
    let Some(root) = fetched("glassllm") else {
        return;
    };
    let prompt = "Alice was beginning to get very tired";
    let args = args("--temperature 0 --tokens 12", &[prompt]);
    let text = printed(env!("CARGO_BIN_EXE_chat"), &root, &args, "");
    let (_, answer) = text.split_once('\n').unwrap();
    assert_eq!(answer.trim_end(), golden("glassllm.json").as_str().unwrap());
}
