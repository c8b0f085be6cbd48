//! Running other programs in the workspace's root, with the command shown.

use std::{
    env, fs,
    io::{self, BufRead, BufReader},
    path::Path,
    process::{Command, ExitStatus, Stdio},
};

use crate::times::Clock;

/// Set it to 1 to pass where a program that a check needs (python3, node, a Chromium) is missing; the check is then skipped aloud.
pub const ALLOW_MISSING_TOOLS: &str = "BURN_ATTN_ALLOW_MISSING_TOOLS";

/// The words of a command line, none of which has a space.
pub fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// Runs cargo, with the versions of `Cargo.lock`.
pub fn cargo(arguments: &[&str], environment: &[(&str, &str)]) -> Result<(), String> {
    cargo_in(root(), &locked(arguments), environment)
}

/// Runs cargo in another folder than the workspace's root, with the versions that it finds there.
pub fn cargo_in(
    folder: &Path,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> Result<(), String> {
    // The proxy of that name would ask rustup again which compiler to take.
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(folder);
    execute(command, "cargo", arguments, environment, status).map(drop)
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
    let command = Command::new(env!("CARGO"));
    let print = |command: &mut Command| {
        let output = command.stderr(Stdio::inherit()).output()?;
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok((output.status, printed))
    };
    let (_, printed) = execute(command, "cargo", &locked(arguments), environment, print)?;
    Ok(printed)
}

/// Runs `program`.
pub fn run(program: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Result<(), String> {
    let command = Command::new(program);
    execute(command, program, arguments, environment, status).map(drop)
}

/// Runs `program`, whose arguments run tests, and fails if it ran none: a filter that matches no test passes otherwise.
pub fn run_tests(
    program: &str,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> Result<(), String> {
    let count = |command: &mut Command| {
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let mut passed = 0;
        let output = child.stdout.take().expect("it is piped");
        for line in BufReader::new(output).lines() {
            let line = line?;
            println!("{line}");
            passed += passed_tests(&line);
        }
        Ok((child.wait()?, passed))
    };
    let command = Command::new(program);
    match execute(command, program, arguments, environment, count)? {
        (shown, 0) => Err(format!("`{shown}` ran no test")),
        _ => Ok(()),
    }
}

/// Runs a command of this name in the workspace's root, or in its own folder, as `run` says; shows and times it, and fails if it does.
/// Returns what was shown, and what came out.
fn execute<T>(
    mut command: Command,
    name: &str,
    arguments: &[&str],
    environment: &[(&str, &str)],
    run: impl FnOnce(&mut Command) -> io::Result<(ExitStatus, T)>,
) -> Result<(String, T), String> {
    let variables = environment.iter();
    let variables = variables.map(|(name, value)| format!("{name}='{value}' "));
    let variables: String = variables.collect();
    let shown = format!("{variables}{name} {}", arguments.join(" "));
    eprintln!("\n$ {shown}");
    if command.get_current_dir().is_none() {
        command.current_dir(root());
    }
    command.args(arguments).envs(environment.iter().copied());
    let clock = Clock::start();
    let (status, out) = run(&mut command).map_err(|error| format!("{shown}: {error}"))?;
    clock.stop(&shown);
    match status.success() {
        true => Ok((shown, out)),
        false => Err(format!("`{shown}` failed with {status}")),
    }
}

fn status(command: &mut Command) -> io::Result<(ExitStatus, ())> {
    Ok((command.status()?, ()))
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
    env::var_os(ALLOW_MISSING_TOOLS).is_some_and(|value| value == "1")
}

/// Whether `program` answers to `--version`.
pub fn exists(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success())
}

/// An error with the path that it is about.
pub fn at(path: &Path) -> impl Fn(io::Error) -> String {
    move |error| format!("{}: {error}", path.display())
}

pub fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(at(path))
}

pub fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(at(path))
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
