//! The program as people run it: exit codes, Ctrl-C, and what is found before anything expensive happens.

mod common;

use std::fs;
use std::io::Write;
#[cfg(unix)]
use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

#[cfg(unix)]
use common::{Running, curve};
use common::{done, held_out, names, program, refused, text, train};

#[test]
#[cfg(feature = "flex")]
fn replicas_are_as_many_as_threads_unless_it_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let started = |threads: &str, more: &[&str]| {
        let mut command = train(folder.path(), &format!("run-{threads}-{}", more.len()));
        command.env("RAYON_NUM_THREADS", threads);
        command
            .args(["--device", "flex", "--steps", "1"])
            .args(more);
        let stdout = text(&command.output().unwrap().stdout);
        stdout.lines().next().unwrap_or_default().to_string()
    };
    let ends = |line: String, end: &str| assert!(line.ends_with(end), "{line}");
    ends(started("1", &[]), "on flex");
    ends(started("3", &[]), "on flex, 3 replicas");
    ends(started("9", &[]), "on flex, 4 replicas");
    ends(started("9", &["--replicas", "2"]), "on flex, 2 replicas");
}

#[test]
#[cfg(unix)]
fn ctrl_c_stops_after_a_step_and_the_resumed_run_has_the_curve_of_one_that_was_not_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let more = ["--epochs", "60"];
    // The test does not wait for so many epochs: it is stopped, or the test fails.
    let mut running = Running::start(train(folder.path(), "stopped").args(more));
    while !running.line().starts_with("epoch 2/60: loss ") {}
    let (code, rest) = running.interrupt();
    assert_eq!(code, Some(130), "{rest}");
    let (_, name) = rest
        .split_once("stopped; train --resume --out stopped goes on from epoch-")
        .unwrap_or_else(|| panic!("{rest}"));
    let complete: usize = name[..4].parse().unwrap();
    assert!((2..60).contains(&complete), "{complete}");

    let resume = ["train", "--resume", "--report", "report.json"];
    let resumed = done(program(folder.path(), "stopped").args(resume));
    assert!(resumed.starts_with("going on from epoch-"), "{resumed}");
    let report = folder.path().join("report.json");
    assert_eq!(held_out(&report)["sentences"], 5);

    done(train(folder.path(), "straight").args(more));
    let [stopped, straight] = ["stopped", "straight"].map(|out| curve(&folder.path().join(out)));
    assert_eq!(stopped.as_array().unwrap().len(), 60);
    assert_eq!(stopped, straight);
}

#[test]
fn a_run_is_resumed_with_its_own_options() {
    let folder = tempfile::tempdir().unwrap();
    done(train(folder.path(), "run").args(["--steps", "3"]));
    for option in [
        ["--steps", "9"],
        ["--seed", "1"],
        ["--data", "pairs.tsv"],
        ["--learning-rate", "0.1"],
    ] {
        let mut resume = program(folder.path(), "run");
        let output = resume.args(["train", "--resume"]).args(option).output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(2), "{option:?}");
        let error = text(&output.stderr);
        assert!(
            error.contains("'--resume' cannot be used with") && error.contains(option[0]),
            "{error}"
        );
    }
}

#[test]
#[cfg(unix)]
fn training_goes_on_when_nobody_reads_its_lines_any_more() {
    let folder = tempfile::tempdir().unwrap();
    let mut running = train(folder.path(), "run")
        .args(["--epochs", "3", "--report", "report.json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut printed = BufReader::new(running.stdout.take().unwrap());
    printed.read_line(&mut line).unwrap();
    assert!(line.starts_with("training on "), "{line}");
    drop(printed);
    assert_eq!(running.wait().unwrap().code(), Some(0));
    assert!(folder.path().join("report.json").is_file());
    assert_eq!(
        curve(&folder.path().join("run")).as_array().unwrap().len(),
        3
    );
}

#[test]
#[cfg(unix)]
fn a_translation_that_nobody_reads_any_more_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    done(train(folder.path(), "run").args(["--steps", "1"]));
    // A sentence, and the lines of a pipe.
    for text in [Some("2 dos"), None] {
        let input = fs::File::open(folder.path().join("pairs.tsv")).unwrap();
        let mut command = program(folder.path(), "run");
        let mut translating = command
            .arg("translate")
            .args(text)
            .stdin(input)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // Long before the model is loaded.
        drop(translating.stdout.take());
        assert_eq!(translating.wait().unwrap().code(), Some(0), "{text:?}");
    }
}

/// A log on a full disk ends nothing.
#[test]
#[cfg(target_os = "linux")]
fn a_warning_that_cannot_be_printed_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    done(train(folder.path(), "run").args(["--steps", "1", "--max-len", "11"]));
    // The second sentence is too long, which is a warning.
    let pairs = format!("1 uno\tuno\n{}\tdos\n", "uno ".repeat(30));
    fs::write(folder.path().join("long.tsv"), pairs).unwrap();
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = program(folder.path(), "run");
    command.args(["evaluate", "--test", "long.tsv"]);
    let figures = done(command.stderr(full));
    assert!(figures.contains("of 2 sentences"), "{figures}");
}

#[test]
fn a_report_that_cannot_be_written_is_refused_before_training() {
    let folder = tempfile::tempdir().unwrap();
    let more = ["--epochs", "1", "--report", "missing/report.json"];
    let error = refused(train(folder.path(), "run").args(more));
    assert!(
        error.starts_with("error: cannot write missing/report.json: "),
        "{error}"
    );
    let left = names(&folder.path().join("run"));
    assert_eq!(left, [".lock"], "nothing was trained");
}

#[test]
fn the_report_may_lie_in_the_folder_that_the_run_creates() {
    let folder = tempfile::tempdir().unwrap();
    done(train(folder.path(), "new/run").args(["--steps", "2", "--report", "new/run/report.json"]));
    let report = folder.path().join("new/run/report.json");
    assert_eq!(held_out(&report)["sentences"], 5);
}

#[test]
fn a_run_is_left_alone_and_explained_beside_its_checkpoints() {
    let folder = tempfile::tempdir().unwrap();
    done(train(folder.path(), "run").args(["--steps", "3"]));
    assert_eq!(
        refused(train(folder.path(), "run").args(["--steps", "3"])),
        "error: run already holds the run epoch-0000-step-000003: train --resume --out run goes on with it, --out with \
         another folder starts anew\n"
    );
    let told = refused(&mut program(folder.path(), "run"));
    assert!(
        told.starts_with("error: run already holds the run "),
        "{told}"
    );
    let again = done(program(folder.path(), "run").args(["train", "--resume"]));
    assert!(
        again.starts_with("run is complete: nothing is left to train\n"),
        "{again}"
    );

    let mut piped = program(folder.path(), "run");
    let input = fs::File::create_new(folder.path().join("input.txt")).unwrap();
    (&input)
        .write_all(format!("1 uno\n\n{}\n2 dos\n", "uno ".repeat(200)).as_bytes())
        .unwrap();
    (&input).write_all(b"1 u\xf1o").unwrap();
    drop(input);
    let input = fs::File::open(folder.path().join("input.txt")).unwrap();
    let output = piped.arg("translate").stdin(input).output().unwrap();
    // A line each, empty where there is nothing to translate.
    let lines: Vec<String> = text(&output.stdout).lines().map(String::from).collect();
    assert_eq!(
        (lines.len(), lines[1].as_str(), lines[2].as_str()),
        (5, "", "")
    );
    assert_eq!(lines[4], "");
    let complaint = text(&output.stderr);
    assert!(
        complaint.starts_with("error: line 3: cannot translate")
            && complaint.contains("\nerror: line 5: byte 4 is not UTF-8\n"),
        "{complaint}"
    );
    assert_eq!(output.status.code(), Some(1));
    let alone = done(program(folder.path(), "run").args(["translate", "2 dos"]));
    assert_eq!(alone.trim_end(), lines[3]);

    let evaluate = "evaluate --test pairs.tsv --beam 2 --translations found.tsv";
    let scores = done(program(folder.path(), "run").args(evaluate.split(' ')));
    assert!(
        scores.contains("\npairs.tsv: ") && scores.contains("% of 60 sentences"),
        "{scores}"
    );
    let found = fs::read_to_string(folder.path().join("found.tsv")).unwrap();
    assert_eq!(found.lines().count(), 60);
    assert!(
        found.lines().all(|line| line.split('\t').count() == 3),
        "{found}"
    );
    let alone = folder.path().join("alone");
    fs::create_dir(&alone).unwrap();
    let best = folder.path().join("run/best.checkpoint");
    fs::copy(best, alone.join("best.checkpoint")).unwrap();
    let again = done(program(folder.path(), "alone").args(evaluate.split(' ')));
    assert_eq!(again, scores);
    for (args, problem) in [
        (
            &["translate", "a", "--report", "r"][..],
            "--report is written by the demo, train and evaluate, not by translate",
        ),
        (
            &["evaluate", "--report", "r", "--translations", "./r"],
            "--report and --translations name the same file, ./r",
        ),
        (
            &["evaluate", "--report", "pairs.tsv"],
            "--report would overwrite pairs.tsv",
        ),
    ] {
        let error = refused(program(folder.path(), "run").args(args));
        assert_eq!(error, format!("error: {problem}\n"));
    }

    done(program(folder.path(), "run").args(["explain", "1 uno"]));
    let page = fs::read_to_string(folder.path().join("run/attention.html")).unwrap();
    assert!(page.starts_with("<!doctype html>"), "{page}");
    fs::remove_file(folder.path().join("run/attention.html")).unwrap();
    let mut explain = program(folder.path(), "run");
    explain.args(["explain", "1 uno"]);
    explain.args("--svg encoder.svg --text --draw encoder:1".split(' '));
    let text = done(&mut explain);
    assert!(
        text.contains("Encoder self-attention, layer 1, head 2 of 2"),
        "{text}"
    );
    let svg = fs::read_to_string(folder.path().join("encoder.svg")).unwrap();
    assert!(svg.starts_with("<svg "), "{svg}");
    assert!(!names(&folder.path().join("run")).contains(&"attention.html".into()));
}

#[test]
fn what_is_of_no_run_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("run")).unwrap();
    for name in ["curve.svg", "attention.html", "best.checkpoint"] {
        let file = folder.path().join("run").join(name);
        fs::write(&file, "somebody else's").unwrap();
        let error =
            format!("error: run: it has a {name} that is of no run: choose another --out\n");
        assert_eq!(
            refused(train(folder.path(), "run").args(["--steps", "1"])),
            error
        );
        assert_eq!(refused(&mut program(folder.path(), "run")), error);
        assert_eq!(fs::read_to_string(&file).unwrap(), "somebody else's");
        fs::remove_file(file).unwrap();
    }
    assert!(names(&folder.path().join("run")).is_empty());
}

#[test]
fn what_is_printed_of_a_corpus_is_short_and_no_command_to_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let long = "x".repeat(999);
    let lines: String = (0..11)
        .map(|i| format!("{i} s\u{ed} \u{1b}[31mdos\runo {long}\t{i}\u{7} tres {long}\n"))
        .collect();
    fs::write(folder.path().join("odd.tsv"), lines).unwrap();
    let mut command = program(folder.path(), "run");
    command.args("train --data odd.tsv --held-out 3 --steps 2 --batch 5".split(' '));
    command.args("--d-model 8 --heads 2 --layers 1 --d-ff 8 --vocabulary 300".split(' '));
    let printed = done(&mut command);
    assert!(!printed.contains(['\u{1b}', '\r', '\u{7}']), "{printed}");
    let of_corpus = "s\u{ed} \u{fffd}[31mdos\u{fffd}uno xxx";
    assert!(printed.matches(of_corpus).count() >= 3, "{printed}");
    assert!(
        printed.lines().all(|line| line.chars().count() < 450),
        "{printed}"
    );

    // Another composition of letters is the same sentence.
    let page = |sentence| {
        done(program(folder.path(), "run").args(["explain", sentence]));
        fs::read_to_string(folder.path().join("run/attention.html")).unwrap()
    };
    assert_eq!(page("\u{feff}7 si\u{301}"), page("7 s\u{ed} "));
}

/// A training goes on where its lines cannot be printed, the other commands do not.
#[test]
#[cfg(target_os = "linux")]
fn figures_that_cannot_be_printed_are_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let full = || fs::File::options().write(true).open("/dev/full").unwrap();
    done(
        train(folder.path(), "run")
            .args(["--steps", "1"])
            .stdout(full()),
    );
    for args in [&["evaluate"][..], &["explain", "1 uno"]] {
        let error = refused(program(folder.path(), "run").args(args).stdout(full()));
        assert!(error.contains("failed printing to stdout"), "{error}");
    }
}

#[test]
fn devices_that_only_burn_can_name_are_left_to_burn() {
    let folder = tempfile::tempdir().unwrap();
    let device = |name: &str| {
        refused(
            program(folder.path(), "run")
                .env("BURN_DEVICE", name)
                .arg("evaluate"),
        )
    };
    let unknown = device("abacus");
    assert!(
        unknown.contains("names an unknown device \"abacus\""),
        "{unknown}"
    );
    if !cfg!(feature = "tch") {
        let missing = device("tch");
        assert!(
            missing.contains("the 'tch' feature is not enabled"),
            "{missing}"
        );
    }
}
