//! Sentence encoders in GGUF files.

use std::{fs, path::PathBuf};

use burn_attn_models::{
    bert::Pooling,
    sentences::{Prompt, SentenceEncoder},
};
use burn_attn_tests::{devices, golden};
use serde_json::json;
use tempfile::TempDir;

use super::{
    super::gguf::{insert, written},
    assembled, assert_rows, assert_vectors, golden_models,
};

/// A GGUF file whose metadata say how to pool, with a tokenizer beside it.
fn gguf(pooling_type: Option<u32>) -> (TempDir, PathBuf) {
    let mut bytes = fs::read(golden::path("gguf").join("bert.gguf")).expect("read");
    if let Some(pooling_type) = pooling_type {
        insert(&mut bytes, "bert.pooling_type", pooling_type);
    }
    let (folder, path) = written(bytes);
    let tokenizer = golden::path("sentences").join("tokenizer.json");
    fs::copy(tokenizer, folder.path().join("tokenizer.json")).expect("copied");
    (folder, path)
}

#[test]
fn gguf_files_pool_as_they_say() {
    let device = devices::any();
    let models = golden_models();
    let texts: Vec<String> = serde_json::from_value(models["texts"].clone()).expect("texts");
    let rows = |name: &str| -> Vec<Vec<f64>> {
        let rows = models["models"][name]["vectors"]["text"].clone();
        serde_json::from_value(rows).expect("rows")
    };
    let cases = [
        (None, Pooling::Mean, rows("mean")),
        (Some(1), Pooling::Mean, rows("mean")),
        (Some(2), Pooling::Cls, rows("cls_not_normalized")),
        (
            Some(3),
            Pooling::LastToken,
            last_third(rows("side_by_side")),
        ),
    ];
    for (pooling_type, pooling, expected) in cases {
        let (_folder, path) = gguf(pooling_type);
        let encoder = SentenceEncoder::from_pretrained(path, &device).expect("a model");
        assert_eq!(encoder.pooling(), [pooling]);
        let vectors = encoder.encode(&texts, Prompt::Text).expect("vectors");
        let expected: Vec<Vec<f64>> = expected.into_iter().map(of_length_one).collect();
        assert_rows(
            &format!("{pooling:?}"),
            vectors.into_data(),
            json!(expected),
        );
    }
    for pooling_type in [0, 4] {
        let (_folder, path) = gguf(Some(pooling_type));
        let error = SentenceEncoder::from_pretrained(&path, &device).expect_err("refused");
        assert_eq!(
            error.to_string(),
            format!(
                "{}: bert.pooling_type is {pooling_type}, but SentenceEncoder supports 1 (mean), 2 (cls) or 3 (last)",
                path.display()
            )
        );
    }
}

/// In `side_by_side` the first token's states come first, then the sums, then the last token's.
fn last_third(rows: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    rows.into_iter().map(|row| row[24..].to_vec()).collect()
}

fn of_length_one(row: Vec<f64>) -> Vec<f64> {
    let length = row.iter().map(|number| number * number).sum::<f64>().sqrt();
    row.into_iter().map(|number| number / length).collect()
}

#[test]
fn modules_beside_a_gguf_file_are_read() {
    let device = devices::any();
    for (pooling_type, is_read) in [(None, true), (Some(2), true), (Some(1), false)] {
        let (folder, path) = gguf(pooling_type);
        let (modules, files) = assembled("labse");
        let is_beside =
            |file: &&String| !["config.json", "model.safetensors"].contains(&file.as_str());
        for file in files.iter().filter(is_beside) {
            let to = folder.path().join(file);
            fs::create_dir_all(to.parent().expect("a folder")).expect("made");
            fs::copy(modules.path().join(file), to).expect("copied");
        }
        match (SentenceEncoder::from_pretrained(path, &device), is_read) {
            (Ok(encoder), true) => assert_vectors(&encoder, "labse"),
            (Err(error), false) => {
                let expected = "bert.pooling_type is Mean, but SentenceEncoder supports [Cls], as modules.json beside it says";
                assert!(error.to_string().ends_with(expected), "{error}");
            }
            (found, _) => panic!("{pooling_type:?}: {found:?}"),
        }
    }
}
