//! The program as people run it.

#[cfg(unix)]
mod resumed;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};
#[cfg(unix)]
use std::{
    io::{BufRead, BufReader, Read},
    process::{Child, ChildStdout, Stdio},
};

/// A text of which a small model learns much in a few steps.
fn text(folder: &Path) -> PathBuf {
    let path = folder.join("text.txt");
    let animals = ["dog", "cat", "horse", "bird"];
    let verbs = ["sees", "hears", "likes"];
    let lines: String = (0..900)
        .map(|i| {
            let [subject, object] = [animals[i * 7 % 4], animals[i * i % 4]];
            format!("The {subject} {} the {object}.\n", verbs[i * 5 % 3])
        })
        .collect();
    fs::write(&path, lines).unwrap();
    path
}

fn program(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_language-model"));
    command.current_dir(folder).args(args);
    command
        .env("BURN_DEVICE", "flex")
        .env_remove("RUST_BACKTRACE");
    command
}

/// A command under way, and the lines that it prints.
#[cfg(unix)]
fn started(folder: &Path, args: &[&str]) -> (Child, BufReader<ChildStdout>) {
    let mut command = program(folder, args);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let printed = BufReader::new(child.stdout.take().unwrap());
    (child, printed)
}

/// Reads until a line has these words.
#[cfg(unix)]
fn wait_for(words: &str, printed: &mut BufReader<ChildStdout>) {
    let mut line = String::new();
    while !line.contains(words) {
        line.clear();
        assert_ne!(printed.read_line(&mut line).unwrap(), 0, "no {words:?}");
    }
}

/// What a command that succeeds prints.
fn printed(folder: &Path, args: &[&str]) -> String {
    let output = program(folder, args).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{error}");
    String::from_utf8(output.stdout).unwrap()
}

/// The error of a command that fails.
fn refused(folder: &Path, args: &[&str]) -> String {
    let output = program(folder, args).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{args:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// A model so small that a test trains it.
fn small() -> Vec<&'static str> {
    let options = "--d-model 24 --heads 3 --layers 1 --d-ff 32 --vocabulary 300 \
        --len 16 --batch 8 --warmup 10 --learning-rate 0.01";
    options.split_whitespace().collect()
}

fn train(more: &[&'static str]) -> Vec<&'static str> {
    let mut args = vec!["train", "text.txt", "--out", "run"];
    args.extend(more);
    args
}

fn train_small(more: &[&'static str]) -> Vec<&'static str> {
    train(&[&small()[..], more].concat())
}

/// The validation losses that a run printed, by epoch.
fn losses(printed: &str) -> Vec<(String, f64)> {
    let lines = printed.lines().filter(|line| line.contains(": valid,"));
    let loss = |line: &str| {
        let (epoch, rest) = line.split_once(": ").unwrap();
        let loss = rest.split("loss ").nth(1).unwrap();
        let loss = loss.split(',').next().unwrap();
        (epoch.to_string(), loss.parse().unwrap())
    };
    lines.map(loss).collect()
}

#[test]
fn it_learns_on_two_devices_resumes_and_writes() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    text(folder);
    let two_devices = ["--devices", "flex,flex", "--epochs", "2"];
    let first = losses(&printed(folder, &train_small(&two_devices)));
    assert_eq!(
        [&first[0].0, &first[1].0],
        ["epoch 1/2", "epoch 2/2"],
        "{first:?}"
    );
    // The loss of a uniform guess among 300 tokens is 5.7.
    assert!(first[1].1 < first[0].1 && first[1].1 < 2.0, "{first:?}");

    // What is over stays over.
    let over = printed(folder, &train(&["--resume"]));
    assert!(
        over.ends_with("the run is over, after 2 epochs\n"),
        "{over}"
    );
    // A byte order mark makes no other text.
    let marked = fs::read_to_string(folder.join("text.txt")).unwrap();
    fs::write(folder.join("text.txt"), format!("\u{feff}{marked}")).unwrap();
    assert_eq!(printed(folder, &train(&["--resume"])), over);

    let samples = fs::read_to_string(folder.join("run/samples.txt")).unwrap();
    assert_eq!(samples.matches("epoch ").count(), 2, "{samples}");

    let args = ["continue", "The dog", "--out", "run", "--tokens", "9"];
    let greedy = [&args[..], &["--temperature", "0"]].concat();
    let text = printed(folder, &greedy);
    assert!(text.starts_with("The dog "), "{text}");
    assert!(text.contains(" the "), "{text}");
    assert_eq!(text, printed(folder, &greedy));
    let drawn = |seed| printed(folder, &[&args[..], &["--seed", seed]].concat());
    assert_eq!(drawn("3"), drawn("3"));
    let pictures = ["--temperature", "0", "--text", "--draw", "1:1"];
    let files = ["--html", "map.html", "--svg", "map.svg"];
    let shown = printed(folder, &[&args[..], &pictures, &files].concat());
    assert!(shown.starts_with(&text), "{shown}");
    assert!(shown.contains("Self-attention, layer 1"), "{shown}");
    let written = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    assert!(written("map.html").contains("What the language model looks at"));
    assert!(written("map.svg").starts_with("<svg"));

    // Only the newest checkpoint and the best one stay.
    let files = fs::read_dir(folder.join("run")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut checkpoints: Vec<String> = names.filter(|name| name.contains("checkpoint")).collect();
    checkpoints.sort();
    assert_eq!(checkpoints, ["best.checkpoint", "newest.checkpoint"]);

    for prompt in ["", &"dog ".repeat(40)] {
        let error = refused(folder, &["continue", prompt, "--out", "run"]);
        assert!(
            error.contains("but this model continues prompts of 1 to 15"),
            "{error}"
        );
    }
    fs::write(folder.join("text.txt"), "The dog.\n".repeat(900)).unwrap();
    assert_eq!(
        refused(folder, &train(&["--resume"])),
        "error: run: text.txt is not the text of this run\n"
    );

    // As many tokens as there is room for, and no more.
    let long = printed(
        folder,
        &["continue", "The dog", "--out", "run", "--tokens", "999"],
    );
    assert!(long.starts_with("The dog"), "{long}");
}

#[test]
fn what_cannot_work_is_said_in_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let path = text(folder);
    let start = |sentence: &str, args: &[&'static str]| {
        let error = refused(folder, &train_small(args));
        assert_eq!(error, format!("error: {sentence}\n"));
        assert!(!folder.join("run").exists(), "{args:?}");
    };
    start(
        "3 devices cannot share a batch of 8 equally",
        &["--devices", "flex,flex,flex"],
    );
    start(
        "--ddp needs devices that exchange gradients themselves, and in Burn 0.22 flex does not: only cuda does",
        &["--devices", "flex,flex", "--ddp"],
    );
    start("--epochs must be at least 1, got 0", &["--epochs", "0"]);
    start(
        "--dropout must be at least 0 and less than 1, got 1.5",
        &["--dropout", "1.5"],
    );
    start("--patience must be at least 1, got 0", &["--patience", "0"]);
    let error = refused(folder, &train(&["--learning-rate", "nan"]));
    assert_eq!(
        error,
        "error: --learning-rate must be above 0 and at most 1, got NaN\n"
    );
    let error = refused(folder, &["train", "missing.txt"]);
    assert!(
        error.starts_with("error: cannot read missing.txt: "),
        "{error}"
    );

    fs::write(&path, b"caf\xe9").unwrap();
    start("cannot train on text.txt: byte 4 is not UTF-8", &[]);
    fs::write(&path, "").unwrap();
    start(
        "cannot train on text.txt: it has 0 tokens, but --len 16 and --batch 8 need about 340",
        &[],
    );

    let error = refused(folder, &["continue", "The", "--out", "none"]);
    assert_eq!(error, "error: none: there is no trained model here\n");
    let error = refused(folder, &["train", "text.txt", "--out", "none", "--resume"]);
    assert_eq!(
        error,
        "error: none: there is no checkpoint here: train without --resume\n"
    );
    assert!(!folder.join("none").exists());
}

#[test]
fn a_run_is_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    text(folder);
    printed(folder, &train_small(&["--epochs", "1"]));
    let model = fs::read(folder.join("run/model.safetensors")).unwrap();
    assert_eq!(
        refused(folder, &train_small(&[])),
        "error: run: there is a run here already: go on with it by --resume, or choose another --out\n"
    );
    assert_eq!(
        fs::read(folder.join("run/model.safetensors")).unwrap(),
        model
    );

    // A file that belongs to no run is not overwritten either.
    for name in ["config.json", "tokenizer_config.json", "samples.txt"] {
        fs::create_dir(folder.join("other")).unwrap();
        fs::write(folder.join("other").join(name), "{}").unwrap();
        assert_eq!(
            refused(folder, &["train", "text.txt", "--out", "other"]),
            format!("error: other: it has a {name} that is of no run: choose another --out\n")
        );
        fs::remove_dir_all(folder.join("other")).unwrap();
    }
    // A run that was killed while it wrote its first checkpoint begins anew, without what the old one has written.
    fs::remove_dir_all(folder.join("run")).unwrap();
    fs::create_dir(folder.join("run")).unwrap();
    let old = [".unfinished-newest.checkpoint", "best.checkpoint"];
    let old = old.map(|name| folder.join("run").join(name));
    old.iter().for_each(|path| fs::write(path, "half").unwrap());
    assert_eq!(
        refused(folder, &train(&["--resume"])),
        "error: run: there is no checkpoint here: train without --resume\n"
    );
    printed(folder, &train_small(&["--epochs", "1"]));
    assert!(!old[0].exists());
    assert_ne!(fs::read(&old[1]).unwrap(), b"half");
}

/// A vocabulary may be larger than any text allows, and a text may have escape sequences.
#[test]
#[cfg(unix)]
fn training_goes_on_when_nobody_reads_its_lines_any_more() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let lines = fs::read_to_string(text(folder)).unwrap();
    let coloured = lines.replace("The", "\u{1b}[31mThe");
    fs::write(folder.join("text.txt"), coloured).unwrap();
    let mut args = train_small(&["--epochs", "1"]);
    let vocabulary = args.iter_mut().find(|arg| **arg == "300");
    *vocabulary.unwrap() = "99999999999";
    let (mut training, mut printed) = started(folder, &args);
    let mut line = String::new();
    printed.read_line(&mut line).unwrap();
    assert!(line.contains(" parameters, "), "{line}");
    drop(printed);
    assert!(training.wait().unwrap().success());
    assert!(folder.join("run/model.safetensors").is_file());
    let samples = fs::read_to_string(folder.join("run/samples.txt")).unwrap();
    assert!(samples.contains("\u{fffd}[31mThe"), "{samples}");
    assert!(!samples.contains('\u{1b}'), "{samples}");
    let prompt = "The dog sees the cat.\n\u{1b}[31mThe";
    let args = ["continue", prompt, "--out", "run", "--temperature", "0"];
    let text = self::printed(folder, &args);
    assert!(
        text.starts_with("The dog sees the cat.\n\u{fffd}[31mThe"),
        "{text:?}"
    );
    if let Ok(full) = fs::File::options().write(true).open("/dev/full") {
        let continued = program(folder, &args).stdout(full).status();
        assert_eq!(continued.unwrap().code(), Some(1));
    }
    // What the model wrote is printable, too.
    assert!(text.matches("\u{fffd}[").count() > 1, "{text:?}");
    assert!(!text.contains('\u{1b}'), "{text:?}");
}

#[test]
#[cfg(unix)]
fn ctrl_c_saves_the_model_of_the_best_epoch() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    text(folder);
    // More epochs than the test waits for.
    let long = ["--epochs", "100000", "--patience", "100000"];
    let (mut training, mut printed) = started(folder, &train_small(&long));
    wait_for("epoch 2/100000: train", &mut printed);
    let id = training.id().to_string();
    let killed = Command::new("kill").args(["-INT", &id]).status();
    assert!(killed.unwrap().success());
    let mut rest = String::new();
    printed.read_to_string(&mut rest).unwrap();
    assert_eq!(training.wait().unwrap().code(), Some(130), "{rest}");
    let goes_on = "stopped; train text.txt --resume --out run goes on after epoch ";
    assert!(
        rest.contains("\nthe model of epoch ") && rest.contains(goes_on),
        "{rest}"
    );
    let args = ["continue", "The dog", "--out", "run", "--tokens", "3"];
    assert!(self::printed(folder, &args).starts_with("The dog"));
}

#[test]
fn a_second_training_on_the_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    text(folder);
    let in_use = "error: run is in use: another training writes into it; wait until it has ended, or name another folder with --out\n";
    // Before there is a checkpoint, and beside one.
    for more in [&["--epochs", "1"][..], &[]] {
        let first = example_common::lock::lock(&folder.join("run")).unwrap();
        assert_eq!(refused(folder, &train_small(&[])), in_use);
        assert_eq!(refused(folder, &train(&["--resume"])), in_use);
        drop(first);
        if !more.is_empty() {
            printed(folder, &train_small(more));
        }
    }
    // The lock is that of the training, not of the file, which stays.
    assert!(folder.join("run/.lock").exists());
    printed(folder, &train(&["--resume"]));
}
