//! The program as a child process, and the smallest run.

#![allow(dead_code, reason = "no suite uses all of it")]

use std::fs;
use std::path::Path;
use std::process::Command;
#[cfg(unix)]
use std::{
    io::{BufRead, BufReader},
    process::{Child, Stdio},
    sync::mpsc::{Receiver, channel},
    time::{Duration, Instant},
};

/// The smallest model on a corpus of 60 pairs, in the folder `out`, in batches of 8: an epoch has 7 steps.
pub fn train(folder: &Path, out: &str) -> Command {
    let mut command = train_in_batches(folder, out);
    command.args(["--batch", "8"]);
    command
}

/// The command of [`train`] without a batch size, which the caller adds.
pub fn train_in_batches(folder: &Path, out: &str) -> Command {
    let corpus = folder.join("pairs.tsv");
    let words = ["uno", "dos", "tres", "cuatro", "cinco"];
    let lines: String = (0..60)
        .map(|i| format!("{i} {}\t{}\n", words[i % 5], words[i * 3 % 5]))
        .collect();
    fs::write(&corpus, lines).unwrap();
    let mut command = program(folder, out);
    command.arg("train").arg("--data").arg(corpus);
    for (option, value) in [
        ("--d-model", "8"),
        ("--heads", "2"),
        ("--layers", "1"),
        ("--d-ff", "8"),
        ("--vocabulary", "300"),
        ("--held-out", "5"),
        ("--schedule", "noam"),
    ] {
        command.args([option, value]);
    }
    command
}

pub fn program(folder: &Path, out: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_translation"));
    command.current_dir(folder).args(["--out", out]);
    command.env_remove("RUST_BACKTRACE");
    command
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What a command that ends with this exit code has printed, and its errors.
fn ended(command: &mut Command, code: i32) -> [String; 2] {
    let output = command.output().unwrap();
    let [printed, errors] = [&output.stdout, &output.stderr].map(|bytes| text(bytes));
    assert_eq!(output.status.code(), Some(code), "{printed}{errors}");
    [printed, errors]
}

/// The error of a command that could not be carried out.
pub fn refused(command: &mut Command) -> String {
    let [_, errors] = ended(command, 1);
    errors
}

/// What a command that was carried out has printed.
pub fn done(command: &mut Command) -> String {
    let [printed, _] = ended(command, 0);
    printed
}

/// The loss curve of a run, as its newest checkpoint has stored it.
#[cfg(unix)]
pub fn curve(out: &Path) -> serde_json::Value {
    header(out)["state"]["curve"].clone()
}

/// The first line of the newest checkpoint of a run.
#[cfg(unix)]
pub fn header(out: &Path) -> serde_json::Value {
    let file = fs::read(out.join("newest.checkpoint")).unwrap();
    serde_json::from_slice(file.split(|&byte| byte == b'\n').next().unwrap()).unwrap()
}

/// What a report says of the held-out sentences.
pub fn held_out(report: &Path) -> serde_json::Value {
    let report: serde_json::Value = serde_json::from_slice(&fs::read(report).unwrap()).unwrap();
    report["held_out"].clone()
}

/// The longest that a test waits for a line of a training.
#[cfg(unix)]
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A training whose lines are read while it goes on; it does not outlive the test.
#[cfg(unix)]
pub struct Running {
    pub child: Child,
    lines: Receiver<String>,
}

#[cfg(unix)]
impl Running {
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let printed = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in printed.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Self { child, lines }
    }

    /// The next line that it prints.
    pub fn line(&mut self) -> String {
        self.lines
            .recv_timeout(PATIENCE)
            .expect("it prints another line")
    }

    /// Presses Ctrl-C; returns its exit code and the rest of its lines, when it has ended by itself.
    pub fn interrupt(self) -> (Option<i32>, String) {
        let interrupt = format!("kill -INT {}", self.child.id());
        let mut shell = Command::new("sh");
        assert!(shell.args(["-c", &interrupt]).status().unwrap().success());
        self.end()
    }

    /// Its exit code and the rest of its lines, when it has ended by itself.
    pub fn end(mut self) -> (Option<i32>, String) {
        let start = Instant::now();
        let code = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status.code();
            }
            assert!(start.elapsed() < PATIENCE, "it goes on");
            std::thread::sleep(Duration::from_millis(20));
        };
        (code, self.lines.iter().collect::<Vec<_>>().join("\n"))
    }
}

#[cfg(unix)]
impl Drop for Running {
    fn drop(&mut self) {
        // One that has ended cannot be killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The names of what is in a folder, in their order.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
