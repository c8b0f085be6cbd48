//! `sentiment`.

use std::{fs, path::Path};

use safetensors::SafeTensors;

use super::{args, printed, program, refused, small};

const SENTIMENT: &str = env!("CARGO_BIN_EXE_sentiment");
const TRAIN: &str = "train reviews.tsv --model . --batch 4 --learning-rate 0.01 --epochs";

/// A model, and reviews that like cats and fish.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    small::bert(folder.path());
    let lines = (1..=60).map(|number| match number % 3 {
        0 => format!("{number}\t2.5\tthe cat eats two fish\n"),
        1 => format!("{number}\t-2.5\tthe dog sleeps\n"),
        _ => format!("{number}\t1.5\ta cat in the sun\n"),
    });
    fs::write(folder.path().join("reviews.tsv"), lines.collect::<String>()).unwrap();
    folder
}

/// Trains for so many epochs into a folder.
fn train(folder: &Path, epochs: &str, out: &str, more: &[&str]) -> String {
    let args = args(TRAIN, &[&[epochs, "--out", out], more].concat());
    printed(SENTIMENT, folder, &args, "")
}

fn weights(folder: &Path) -> Vec<u8> {
    fs::read(folder.join("model.safetensors")).unwrap()
}

#[test]
fn what_people_like_is_learned() {
    let folder = folder();
    let text = train(folder.path(), "10", "trained", &[]);
    let right = "of 12 reviews that were held out, 100.00 % have the right sign";
    assert_eq!(text.lines().last(), Some(right), "{text}");
    assert!(text.contains("\nthe model is in trained\n"), "{text}");
    let args = ["evaluate", "reviews.tsv", "--model", "trained"];
    let again = printed(SENTIMENT, folder.path(), &args, "");
    assert_eq!(again.trim_end(), right);

    let ask = ["ask", "--model", "trained"];
    let texts = ["two cat", "a dog"];
    let answers = printed(SENTIMENT, folder.path(), &[&ask[..], &texts].concat(), "");
    assert!(
        answers.starts_with('+') && answers.contains("\ttwo cat\n-"),
        "{answers}"
    );
    // Texts from a pipe have the same scores.
    assert_eq!(
        printed(SENTIMENT, folder.path(), &ask, "\u{feff}two cat\n\na dog\n"),
        answers
    );
    let coloured = printed(SENTIMENT, folder.path(), &ask, "two \u{1b}[31mcat\n");
    assert!(
        coloured.ends_with("\ttwo \u{fffd}[31mcat\n"),
        "{coloured:?}"
    );

    let pictures = ["--html", "page.html", "--text", "--draw", "2:3"];
    let drawn = [&ask[..], &texts[..1], &pictures].concat();
    let drawn = printed(SENTIMENT, folder.path(), &drawn, "");
    assert!(drawn.contains("layer 2, head 3 of 3"), "{drawn}");
    let page = fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(page.contains("What the sentiment model looks at"));
}

#[test]
fn a_seed_gives_the_same_model() {
    let folder = folder();
    for (out, seed) in [("one", "5"), ("two", "5"), ("three", "6")] {
        train(folder.path(), "1", out, &["--seed", seed]);
    }
    let [one, two, three] = ["one", "two", "three"].map(|out| weights(&folder.path().join(out)));
    assert!(one == two);
    assert!(one != three);
}

#[test]
fn adapters_leave_the_embeddings_as_they_are() {
    let folder = folder();
    let text = train(folder.path(), "1", "trained", &["--lora", "2"]);
    // In each layer, two numbers for each row and column of 24 x 72, 24 x 24, 24 x 31 and 31 x 24; the pooler, and the head.
    let adapters = 2 * 2 * (24 + 72 + 24 + 24 + 24 + 31 + 31 + 24);
    let above = 24 * 24 + 24 + 24 + 1;
    let begins = format!("{} of ", adapters + above);
    assert!(text.starts_with(&begins), "{text}");

    let (base, trained) = (
        weights(folder.path()),
        weights(&folder.path().join("trained")),
    );
    let base = SafeTensors::deserialize(&base).unwrap();
    let trained = SafeTensors::deserialize(&trained).unwrap();
    for (name, stays) in [
        ("embeddings.word_embeddings.weight", true),
        ("encoder.layer.0.intermediate.dense.bias", true),
        ("encoder.layer.0.intermediate.dense.weight", false),
        ("encoder.layer.1.attention.self.query.weight", false),
        ("pooler.dense.weight", false),
    ] {
        let before = base.tensor(name).unwrap();
        let after = trained.tensor(&format!("bert.{name}")).unwrap();
        assert_eq!(before.data() == after.data(), stays, "{name}");
    }
}

#[test]
fn an_albert_is_trained_as_well() {
    let folder = folder();
    small::albert(folder.path());
    let text = train(folder.path(), "1", "trained", &[]);
    let args = ["evaluate", "reviews.tsv", "--model", "trained"];
    let again = printed(SENTIMENT, folder.path(), &args, "");
    assert_eq!(text.lines().last(), again.lines().last());
    let config = fs::read_to_string(folder.path().join("trained/config.json")).unwrap();
    assert!(
        config.contains("AlbertForSequenceClassification"),
        "{config}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn training_goes_on_without_its_lines() {
    let train = args(TRAIN, &["1", "--out", "trained"]);
    for is_full in [true, false] {
        let folder = folder();
        let code = super::code_without_lines(SENTIMENT, folder.path(), &train, "", is_full);
        assert_eq!(code, Some(0), "{is_full}");
        assert!(folder.path().join("trained/config.json").exists());
        // Figures that cannot be written are a failure, except into a closed pipe.
        let args = ["evaluate", "reviews.tsv", "--model", "trained"];
        let code = super::code_without_lines(SENTIMENT, folder.path(), &args, "", is_full);
        assert_eq!(code, Some(i32::from(is_full)));
    }
}

#[test]
fn a_second_training_on_the_folder_is_refused() {
    let folder = folder();
    let lock = example_common::lock::lock(&folder.path().join("trained")).unwrap();
    let args = args(TRAIN, &["1", "--out", "trained"]);
    assert_eq!(
        refused(SENTIMENT, folder.path(), &args, ""),
        "error: trained is in use: another training writes into it; wait until it has ended, or name another folder with --out\n"
    );
    drop(lock);
    train(folder.path(), "1", "trained", &[]);
}

#[cfg(unix)]
#[test]
fn ctrl_c_saves_nothing() {
    // With and without a reader of the last line.
    for is_read in [true, false] {
        stopped(is_read);
    }
}

#[cfg(unix)]
fn stopped(is_read: bool) {
    use std::{
        io::{BufRead, BufReader, Read},
        process::{Command, Stdio},
    };

    let folder = folder();
    let args = args(TRAIN, &["100000", "--out", "trained"]);
    let mut child = Command::new(SENTIMENT)
        .current_dir(folder.path())
        .env("BURN_DEVICE", "flex")
        .args(args)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut printed = BufReader::new(child.stdout.take().unwrap());
    // Training has begun.
    let mut line = String::new();
    while !line.contains("epoch 1/") {
        line.clear();
        assert_ne!(printed.read_line(&mut line).unwrap(), 0);
    }
    let mut printed = Some(printed).filter(|_| is_read);
    let id = child.id().to_string();
    let killed = Command::new("kill").args(["-INT", &id]).status();
    assert!(killed.unwrap().success());
    let mut rest = String::new();
    if let Some(printed) = &mut printed {
        printed.read_to_string(&mut rest).unwrap();
    }
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest}");
    assert!(
        !is_read || rest.ends_with("stopped: nothing is saved\n"),
        "{rest}"
    );
    assert!(!folder.path().join("trained/config.json").exists());
}

#[test]
fn what_cannot_work_is_one_sentence() {
    let folder = folder();
    let error = |args: &[&str]| refused(SENTIMENT, folder.path(), args, "");
    assert_eq!(
        error(&["ask", "cat"]),
        "error: there is no model in sentiment-model: `sentiment train` makes one; --model names another folder\n"
    );
    assert!(error(&["train", "--model", "."]).contains("`cargo xtask fetch reviews`"));
    assert!(error(&["train", "reviews.tsv"]).contains("`cargo xtask fetch minilm`"));
    let zero = ["train", "reviews.tsv", "--learning-rate", "0"];
    let zero = program(SENTIMENT, folder.path(), &zero, "");
    assert_eq!(zero.status.code(), Some(2));
    let error_of_zero = String::from_utf8(zero.stderr).unwrap();
    assert!(
        error_of_zero.contains("it must be above 0 and at most 1"),
        "{error_of_zero}"
    );
    train(folder.path(), "1", "trained", &[]);
    let again = args(TRAIN, &["1", "--out", "trained"]);
    assert_eq!(
        error(&again),
        "error: trained/config.json is there already: choose another --out\n"
    );
    assert_eq!(
        error(&["ask", "--model", "trained", "--html", "page.html"]),
        "error: --html: there is no text on the command line to draw\n"
    );
    assert_eq!(
        error(&["ask", "--model", "trained", ""]),
        "error: \"\": this text has no tokens\n"
    );
    let long = "cat ".repeat(10);
    let last = error(&["ask", "--model", "trained", &long]);
    let ends = "this text has 12 tokens, but this encoder reads at most 11\n";
    assert!(last.ends_with(ends), "{last}");
    let other = tempfile::tempdir().unwrap();
    small::gpt(other.path());
    let gpt = other.path().to_str().unwrap();
    let family = error(&["train", "reviews.tsv", "--model", gpt, "--out", "other"]);
    assert!(family.contains("model_type is \"gpt2\""), "{family}");
    // The encoder alone has no head.
    let headless = error(&["ask", "--model", ".", "cat"]);
    // Its 39 tensors have names without `bert.`, and the head's two are missing too.
    for counted in ["missing: bert.embeddings", "(41 in all", "(39 in all"] {
        assert!(headless.contains(counted), "{headless}");
    }
    fs::write(folder.path().join("reviews.tsv"), "1\tgood\tcat\n").unwrap();
    assert!(error(&args(TRAIN, &["1"])).contains("line 1 is not an ID, a score"));
}
