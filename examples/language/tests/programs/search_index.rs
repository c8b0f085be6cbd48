//! The index of `search`: when it is read again, and what interruptions and unreadable files cost.

use std::{fs, ops::ControlFlow, path::Path};
#[cfg(unix)]
use std::{
    process::Command,
    thread::sleep,
    time::{Duration, Instant},
};

use burn::tensor::Device;
use burn_attn_models::sentences::{Prompt, SentenceEncoder};
use language::{
    sentences::vector,
    text_index::{SAVED_EVERY, TextIndex},
};
use serde_json::json;

use super::{
    printed, program,
    search::{SEARCH, folder},
};

/// The longest that a test waits for the first passages.
#[cfg(unix)]
const PATIENCE: Duration = Duration::from_secs(120);

const FIND: [&str; 5] = ["find", "texts", "the cat", "--model", "model"];

/// What `search` says about its index.
fn said(folder: &Path) -> String {
    let output = program(SEARCH, folder, &FIND, "");
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{error}");
    error
}

/// One text of so many passages, so that a part of it can be kept.
fn write_passages(folder: &Path, passages: usize) {
    let words = ["cat", "dog", "bird", "fish", "sun"];
    let passage = |number: usize| {
        let digits = (0..6).map(|digit| words[number / 5_usize.pow(digit) % 5]);
        digits.collect::<Vec<_>>().join(" ")
    };
    let passages: Vec<String> = (0..passages).map(passage).collect();
    fs::write(folder.join("texts/one.txt"), passages.join("\n\n")).unwrap();
}

#[test]
fn an_interrupted_index_keeps_what_it_read() {
    const PASSAGES: usize = 1201;
    let folder = folder();
    write_passages(folder.path(), PASSAGES);
    let (texts, file) = (folder.path().join("texts"), folder.path().join("index"));
    let model = folder.path().join("model");
    let encoder = SentenceEncoder::from_pretrained(model, &Device::default()).unwrap();
    let update = |stop: usize| {
        let mut of = 0;
        let progress = |over: usize, all: usize| {
            of = all;
            // A kill comes without a warning.
            assert!(over <= SAVED_EVERY || file.exists());
            match over >= stop {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        let extensions = ["txt".to_string()];
        let updated = TextIndex::update(&texts, &extensions, &file, &encoder, progress);
        let (index, update) = updated.unwrap();
        (index, update, of)
    };
    // Before the file is looked at.
    let (none, ..) = update(0);
    assert!(none.is_empty() && !file.exists());
    let (_, first, all) = update(61);
    assert_eq!((all, first.left), (PASSAGES, PASSAGES - 64));
    let (_, second, all) = update(31);
    assert_eq!((all, second.left), (first.left, first.left - 32));
    let (_, third, all) = update(usize::MAX);
    assert_eq!((all, third.left, third.read), (second.left, 0, 1));
    let (again, fourth, all) = update(usize::MAX);
    assert_eq!((all, fourth.kept, fourth.read), (0, 1, 0));
    assert_eq!(again.len(), PASSAGES);
    // It is the index of a run that was not interrupted.
    fs::remove_file(&file).unwrap();
    let (fresh, ..) = update(usize::MAX);
    let query = encoder.tokens("a dog", Prompt::Query).unwrap();
    let query = vector(&encoder, query.get_ids());
    let cosines = |index: &TextIndex| -> Vec<f32> {
        let hits = index.nearest(&query, PASSAGES).into_iter();
        hits.map(|hit| hit.cosine).collect()
    };
    let (again, fresh) = (cosines(&again), cosines(&fresh));
    assert_eq!(again.len(), fresh.len());
    for (again, fresh) in again.iter().zip(&fresh) {
        assert!((again - fresh).abs() < 1e-5, "{again} and {fresh}");
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_keeps_what_was_read() {
    const PASSAGES: usize = 12_007;
    let folder = folder();
    write_passages(folder.path(), PASSAGES);
    let mut child = Command::new(SEARCH)
        .current_dir(folder.path())
        .env("BURN_DEVICE", "flex")
        .args(FIND)
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let index = folder.path().join("texts/.search-index.safetensors");
    // The empty one only tries whether it can be written.
    let started = Instant::now();
    while fs::metadata(&index).map_or(0, |found| found.len()) == 0 {
        assert_eq!(child.try_wait().unwrap(), None, "it has ended");
        if started.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("it has written nothing");
        }
        sleep(Duration::from_millis(1));
    }
    let kill = format!("kill -INT {}", child.id());
    assert!(
        Command::new("sh")
            .args(["-c", &kill])
            .status()
            .unwrap()
            .success()
    );
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{error}");
    let kept = error.split("stopped: ").nth(1).unwrap();
    let kept: usize = kept.split(' ').next().unwrap().parse().unwrap();
    assert!((SAVED_EVERY..PASSAGES).contains(&kept), "{error}");
    let left = PASSAGES - kept;
    let expected = format!(
        "stopped: {kept} of {PASSAGES} passages are in texts/.search-index.safetensors; the next search reads the other {left}\n"
    );
    assert!(error.ends_with(&expected), "{error}");
    assert!(said(folder.path()).contains(&format!("; {PASSAGES} passages in")));
}

/// A path may have 4096 bytes on Linux, which holds for any user.
#[cfg(target_os = "linux")]
#[test]
fn what_cannot_be_read_is_counted() {
    let folder = folder();
    let texts = folder.path().join("texts");
    fs::write(texts.join("one.txt"), "The cat sleeps.").unwrap();
    let chain = |below: &Path, name: &str, parts: usize| {
        let path = (0..parts).fold(below.to_path_buf(), |path, _| path.join(name.repeat(199)));
        fs::create_dir_all(&path).unwrap();
        path
    };
    // The file's path is too long, and below that so is a folder's.
    let deep = folder.path().join("deep");
    fs::create_dir(&deep).unwrap();
    fs::write(deep.join("two.txt"), "A dog.").unwrap();
    fs::write(deep.join(format!("{}.txt", "t".repeat(211))), "A bird.").unwrap();
    chain(&deep, "f", 2);
    fs::rename(deep, chain(&texts, "d", 19).join("e".repeat(103))).unwrap();
    let error = said(folder.path());
    assert!(
        error.contains(
            "texts read: 2, kept: 0, skipped because they or their names are not UTF-8: 0, because they cannot be read: 2; 2 passages in"
        ),
        "{error}"
    );
    let text = printed(SEARCH, folder.path(), &FIND, "");
    assert_eq!(text.lines().count(), 2);
}

#[test]
fn other_pooling_or_another_limit_makes_another_index() {
    let folder = folder();
    fs::write(folder.path().join("texts/one.txt"), "the cat\n\ntwo dog").unwrap();
    let is_read = || said(folder.path()).contains("texts read: 1, kept: 0");
    let write = |file: &str, content: serde_json::Value| {
        let path = folder.path().join("model").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content.to_string()).unwrap();
    };
    assert!(is_read() && !is_read());
    write("tokenizer_config.json", json!({"model_max_length": 7}));
    assert!(is_read() && !is_read());
    let module = |name: &str, path: &str| {
        let class = format!("sentence_transformers.models.{name}");
        json!({"idx": 0, "name": "0", "path": path, "type": class})
    };
    let pooling = |mode: &str| {
        write(
            "pool/config.json",
            json!({"embedding_dimension": 24, "pooling_mode": mode}),
        );
    };
    pooling("cls");
    write(
        "modules.json",
        json!([module("Transformer", ""), module("Pooling", "pool")]),
    );
    assert!(is_read() && !is_read());
    pooling("max");
    assert!(is_read() && !is_read());
    write(
        "config_sentence_transformers.json",
        json!({"prompts": {"document": "the "}}),
    );
    assert!(is_read() && !is_read());
}
