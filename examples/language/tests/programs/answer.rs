//! `answer`.

use std::{fs, path::Path};

use super::{args, printed, refused, small};

const ANSWER: &str = env!("CARGO_BIN_EXE_answer");
const TRAIN: &str = "train --model . --out trained --stories 6 --epochs 1";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    // Most words of the stories are unknown to its tokenizer, but they count.
    small::bert_of_len(folder.path(), 140);
    fs::write(
        folder.path().join("passage.txt"),
        "The cat eats two fish.\nA bird sleeps in the sun.\n",
    )
    .unwrap();
    folder
}

/// Trains a model into the folder `trained`.
fn train(folder: &Path) -> String {
    printed(ANSWER, folder, &args(TRAIN, &[]), "")
}

fn weights(folder: &Path) -> Vec<u8> {
    fs::read(folder.join("model.safetensors")).unwrap()
}

#[test]
fn a_reader_is_trained_evaluated_and_asked() {
    let folder = folder();
    let text = train(folder.path());
    let last = text.lines().last().unwrap();
    assert!(last.contains(" questions: exact match "), "{text}");
    let evaluate = ["evaluate", "--model", "trained"];
    let again = printed(ANSWER, folder.path(), &evaluate, "");
    assert_eq!(again.trim_end(), last);

    let ask = ["ask", "passage.txt", "--model", "trained"];
    let questions = ["who sleeps?", "where?"];
    let answers = printed(ANSWER, folder.path(), &[&ask[..], &questions].concat(), "");
    assert_eq!(answers.lines().count(), 2);
    for (line, question) in answers.lines().zip(questions) {
        let columns: Vec<&str> = line.split('\t').collect();
        let passage = "The cat eats two fish. A bird sleeps in the sun.";
        assert!(passage.contains(columns[1]), "{line}");
        assert!((0.0..=1.0).contains(&columns[0].parse::<f64>().unwrap()));
        assert_eq!(columns[2], question);
    }
    // Questions from a pipe have the same answers.
    assert_eq!(
        printed(ANSWER, folder.path(), &ask, "who sleeps?\nwhere?\n"),
        answers
    );

    let pictures = ["--html", "page.html", "--text", "--draw", "1:1"];
    let drawn = [&ask[..], &questions[..1], &pictures].concat();
    let drawn = printed(ANSWER, folder.path(), &drawn, "");
    assert!(drawn.contains("layer 1, head 1 of 3"), "{drawn}");
    let page = fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(page.contains("What the reader looks at"));
}

#[test]
fn passages_of_a_file_are_evaluated_and_shown() {
    let folder = folder();
    let passage = "the cat eats two fish in the sun";
    let lines = format!("{passage}\twho eats?\tthe cat\n{passage}\twhere\u{1b}[31m?\tin the sun\n");
    fs::write(folder.path().join("passages.tsv"), lines).unwrap();
    train(folder.path());
    let args = ["evaluate", "passages.tsv", "--model", "trained", "--show"];
    let text = printed(ANSWER, folder.path(), &args, "");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[0].starts_with("who eats?\t") && lines[0].ends_with("\tthe cat"));
    assert!(lines[1].starts_with("where\u{fffd}[31m?\t"), "{text:?}");
    assert!(lines[2].starts_with("2 questions: exact match "));

    let ask = super::args(
        "ask --model trained passage.txt",
        &["who \u{1b}[31msleeps?"],
    );
    let answer = printed(ANSWER, folder.path(), &ask, "");
    assert!(
        answer.ends_with("\twho \u{fffd}[31msleeps?\n"),
        "{answer:?}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn training_goes_on_without_its_lines() {
    for is_full in [true, false] {
        let folder = folder();
        let code = super::code_without_lines(ANSWER, folder.path(), &args(TRAIN, &[]), "", is_full);
        assert_eq!(code, Some(0), "{is_full}");
        assert!(folder.path().join("trained/config.json").exists());
    }
}

#[test]
fn a_seed_gives_the_same_model() {
    let folder = folder();
    train(folder.path());
    let one = weights(&folder.path().join("trained"));
    fs::remove_dir_all(folder.path().join("trained")).unwrap();
    train(folder.path());
    assert!(one == weights(&folder.path().join("trained")));
}

#[test]
fn what_cannot_work_is_one_sentence() {
    let folder = folder();
    let error = |args: &[&str]| refused(ANSWER, folder.path(), args, "");
    assert_eq!(
        error(&["ask", "passage.txt", "who?"]),
        "error: there is no model in answer-model: `answer train` makes one; --model names another folder\n"
    );
    train(folder.path());
    assert_eq!(
        error(&args(TRAIN, &[])),
        "error: trained/config.json is there already: choose another --out\n"
    );
    let ask = |file: &str, question: &str| error(&["ask", file, question, "--model", "trained"]);
    assert_eq!(
        ask("passage.txt", " "),
        "error: \" \": this text has no tokens\n"
    );
    assert!(ask("missing.txt", "who?").starts_with("error: cannot read missing.txt: "));
    fs::write(folder.path().join("empty.txt"), "\n").unwrap();
    assert_eq!(
        ask("empty.txt", "who?"),
        "error: there is no text in empty.txt\n"
    );
    fs::write(folder.path().join("long.txt"), "cat ".repeat(140)).unwrap();
    assert_eq!(
        ask("long.txt", "who?"),
        "error: \"who?\": this question and its passage have 145 tokens, but this encoder reads at most 140\n"
    );
    fs::write(folder.path().join("passages.tsv"), "A cat.\tWho?\tA dog\n").unwrap();
    let args = ["evaluate", "passages.tsv", "--model", "trained"];
    assert!(error(&args).contains("line 1 is not a passage, a question and an answer"));
}
