//! The programs as people run them: with small models made on the spot, and with published ones where `cargo xtask fetch` has put them.

mod answer;
mod chat;
#[cfg(feature = "wgpu")]
#[allow(dead_code, reason = "the suites of `tests` use all of it")]
#[path = "../../../../tests/src/devices.rs"]
mod devices;
mod heads;
mod published;
mod reactions;
mod search;
mod search_index;
mod sentiment;
mod small;
mod summarize;
mod terminal;

#[cfg(target_os = "linux")]
use std::fs::File;
use std::{
    io::Write,
    path::Path,
    process::{Command, Output, Stdio},
};

/// The words of a command line, and behind them arguments that may have spaces.
fn args<'a>(words: &'a str, others: &[&'a str]) -> Vec<&'a str> {
    words.split(' ').chain(others.iter().copied()).collect()
}

/// A program in a folder, as cargo runs it: with the runner of its target, if there is one, without which it may not find the GPU's driver.
fn command(path: &str, folder: &Path, args: &[&str]) -> Command {
    let runner = std::env::var("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER").unwrap_or_default();
    let mut words = runner.split_whitespace().chain([path]);
    let mut command = Command::new(words.next().unwrap_or(path));
    command
        .args(words)
        .args(args)
        .current_dir(folder)
        .env("BURN_DEVICE", "flex")
        .env_remove("RUST_BACKTRACE")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    command
}

/// Runs a program in a folder.
fn program(path: &str, folder: &Path, args: &[&str], input: &str) -> Output {
    let mut child = command(path, folder, args)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that does not read it may be gone already.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

/// The exit code of a program whose lines go nowhere: their disk is full, or their reader is gone.
#[cfg(target_os = "linux")]
fn code_without_lines(
    path: &str,
    folder: &Path,
    args: &[&str],
    input: &str,
    is_full: bool,
) -> Option<i32> {
    let mut command = command(path, folder, args);
    if is_full {
        command.stdout(File::options().write(true).open("/dev/full").unwrap());
    }
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait().unwrap().code()
}

/// What a program that succeeds prints.
fn printed(path: &str, folder: &Path, args: &[&str], input: &str) -> String {
    let output = program(path, folder, args, input);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{args:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// The error of a program that fails.
fn refused(path: &str, folder: &Path, args: &[&str], input: &str) -> String {
    let output = program(path, folder, args, input);
    assert_eq!(output.status.code(), Some(1), "{args:?}");
    String::from_utf8(output.stderr).unwrap()
}
