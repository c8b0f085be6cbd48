//! Running other programs in the workspace's root, with the command shown.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use crate::times::Clock;

/// Set it to 1 to pass where a program that a check needs (python3, node, a Chromium) is missing; the check is then skipped aloud.
pub const ALLOW_MISSING_TOOLS: &str = "BURN_ATTN_ALLOW_MISSING_TOOLS";

/// Runs cargo, with the versions of `Cargo.lock`.
pub fn cargo(arguments: &[&str], environment: &[(&str, &str)]) -> Result<(), String> {
    // The proxy of that name would ask rustup again which compiler to take.
    show_and_run(env!("CARGO"), "cargo", &locked(arguments), environment)
}

/// Runs cargo in another folder than the workspace's root, with the versions that it finds there.
pub fn cargo_in(
    folder: &Path,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> Result<(), String> {
    show_and_run_in(folder, env!("CARGO"), "cargo", arguments, environment)
}

/// Runs cargo, which runs tests, and fails if it ran none.
pub fn cargo_tests(arguments: &[&str], environment: &[(&str, &str)]) -> Result<(), String> {
    run_tests(env!("CARGO"), &locked(arguments), environment)
}

/// These arguments of cargo with `--locked`, which fails where `Cargo.lock` does not fit the manifests, instead of changing it.
fn locked<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = arguments.to_vec();
    if arguments.first().is_some_and(|&command| command != "fmt") {
        arguments.insert(1, "--locked");
    }
    arguments
}

/// Runs cargo, and returns what the program that it ran printed.
pub fn cargo_text(arguments: &[&str], environment: &[(&str, &str)]) -> Result<String, String> {
    let arguments = locked(arguments);
    let shown = shown("cargo", &arguments, environment);
    let clock = Clock::start();
    let output = Command::new(env!("CARGO"))
        .args(&arguments)
        .envs(environment.iter().copied())
        .current_dir(root())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("{shown}: {error}"))?;
    clock.stop(&shown);
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("`{shown}` failed with {}", output.status))
    }
}

/// Runs `program`.
pub fn run(program: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Result<(), String> {
    show_and_run(program, program, arguments, environment)
}

/// Runs `program`, whose arguments run tests, and fails if it ran none: a filter that matches no test passes otherwise.
pub fn run_tests(
    program: &str,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> Result<(), String> {
    let shown = shown(program, arguments, environment);
    let clock = Clock::start();
    let mut child = Command::new(program)
        .args(arguments)
        .envs(environment.iter().copied())
        .current_dir(root())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{shown}: {error}"))?;
    let mut passed = 0;
    let output = child.stdout.take().expect("it is piped");
    for line in BufReader::new(output).lines() {
        let line = line.map_err(|error| format!("{shown}: {error}"))?;
        println!("{line}");
        passed += passed_tests(&line);
    }
    let status = child.wait().map_err(|error| format!("{shown}: {error}"))?;
    clock.stop(&shown);
    match (status.success(), passed) {
        (false, _) => Err(format!("`{shown}` failed with {status}")),
        (true, 0) => Err(format!("`{shown}` ran no test")),
        (true, _) => Ok(()),
    }
}

/// How many tests passed by a line of the test runner, 0 if it is no summary.
fn passed_tests(line: &str) -> usize {
    line.split_once("test result: ok. ")
        .and_then(|(_, rest)| rest.split_once(" passed;")?.0.parse().ok())
        .unwrap_or(0)
}

/// Runs `program`, or fails if there is none and [`ALLOW_MISSING_TOOLS`] is not set.
pub fn tool(program: &str, arguments: &[&str]) -> Result<(), String> {
    if exists(program) {
        return run(program, arguments, &[]);
    }
    let missing = format!("`{program} {}` needs {program}", arguments.join(" "));
    if allows_missing_tools() {
        eprintln!("\nskipped: {missing}");
        Ok(())
    } else {
        Err(format!(
            "{missing}; {ALLOW_MISSING_TOOLS}=1 skips what needs a missing program"
        ))
    }
}

/// Whether [`ALLOW_MISSING_TOOLS`] is set to 1.
pub fn allows_missing_tools() -> bool {
    std::env::var_os(ALLOW_MISSING_TOOLS).is_some_and(|value| value == "1")
}

/// Whether `program` answers to `--version`.
pub fn exists(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success())
}

fn show_and_run(
    program: &str,
    name: &str,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> Result<(), String> {
    show_and_run_in(root(), program, name, arguments, environment)
}

fn show_and_run_in(
    folder: &Path,
    program: &str,
    name: &str,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> Result<(), String> {
    let shown = shown(name, arguments, environment);
    let clock = Clock::start();
    let status = Command::new(program)
        .args(arguments)
        .envs(environment.iter().copied())
        .current_dir(folder)
        .status()
        .map_err(|error| format!("{shown}: {error}"))?;
    clock.stop(&shown);
    if status.success() {
        Ok(())
    } else {
        Err(format!("`{shown}` failed with {status}"))
    }
}

/// Shows a command, and returns what was shown.
fn shown(name: &str, arguments: &[&str], environment: &[(&str, &str)]) -> String {
    let mut shown = String::new();
    for (name, value) in environment {
        shown += &format!("{name}='{value}' ");
    }
    shown += &format!("{name} {}", arguments.join(" "));
    eprintln!("\n$ {shown}");
    shown
}

/// The workspace's root.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("the crate lies in crates/xtask")
}

#[cfg(all(test, unix))]
mod tests;
