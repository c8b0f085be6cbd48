//! Running other programs in the workspace's root, with the command shown.

use std::{
    env,
    ffi::OsStr,
    fs,
    io::{self, BufRead, BufReader},
    path::Path,
    process::{Command, ExitStatus, Stdio},
};

use crate::times::Clock;

/// The cargo that runs this program: rustup's proxy of that name would choose the compiler again.
pub const CARGO: &str = env!("CARGO");

/// Set it to 1 to pass where python3, node, cargo-deny, mdBook, a Chromium, NVIDIA's compiler (for `--registers`) or g++ (for `--emulate`) is missing; the checks that need it are
/// then skipped with a message. What the other options need is never passed over: whoever asks for them wants them to run.
const ALLOW_MISSING_TOOLS: &str = "BURN_ATTN_ALLOW_MISSING_TOOLS";

/// What runs the scripts of pages.
pub const NODE: &str = "node 20.10 or later";

/// The words of a command line, none of which has a space.
pub fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// `name`, to be run in the workspace's root.
pub fn program(name: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(name);
    command.current_dir(root());
    command
}

/// Cargo with the words of `line`, and `--locked`, which fails where `Cargo.lock` does not fit the manifests, instead of changing it.
pub fn cargo(line: &str) -> Command {
    let mut words = words(line);
    // `cargo fmt` knows no such flag, and reads no lock file.
    if !words.starts_with(&["fmt"]) {
        words.insert(1, "--locked");
    }
    let mut command = program(CARGO);
    command.args(words);
    command
}

/// Runs a command, and fails if it does.
pub fn run(command: &mut Command) -> Result<(), String> {
    execute(command, |command| Ok((command.status()?, ())))
}

/// Runs a command, and returns what it printed.
pub fn text(command: &mut Command) -> Result<String, String> {
    execute(command, |command| {
        let output = command.stderr(Stdio::inherit()).output()?;
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok((output.status, printed))
    })
}

/// Runs a command that runs tests, and fails if it ran none: a filter that matches no test passes otherwise.
pub fn run_tests(command: &mut Command) -> Result<(), String> {
    let passed = execute(command, |command| {
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let mut passed = 0;
        let output = child.stdout.take().expect("it is piped");
        for line in BufReader::new(output).lines() {
            let line = line?;
            println!("{line}");
            passed += passed_tests(&line);
        }
        Ok((child.wait()?, passed))
    });
    match passed? {
        0 => Err(format!("`{}` ran no test", shown(command))),
        _ => Ok(()),
    }
}

/// Shows and times what `run` does with a command, and fails if the command does.
pub fn execute<T>(
    command: &mut Command,
    run: impl FnOnce(&mut Command) -> io::Result<(ExitStatus, T)>,
) -> Result<T, String> {
    let shown = shown(command);
    eprintln!("\n$ {shown}");
    let clock = Clock::start();
    let (status, out) = run(command).map_err(|error| format!("{shown}: {error}"))?;
    clock.stop(&shown);
    match status.success() {
        true => Ok(out),
        false => Err(format!("`{shown}` failed with {status}")),
    }
}

/// A command as somebody would type it.
fn shown(command: &Command) -> String {
    let variables = command.get_envs().map(|(variable, value)| {
        let value = value.unwrap_or_default();
        format!("{}='{}' ", variable.display(), value.display())
    });
    let program = match command.get_program() {
        program if program == CARGO => "cargo".into(),
        program => program.to_string_lossy(),
    };
    let arguments = command.get_args();
    let arguments = arguments.map(|argument| format!(" {}", argument.display()));
    let (variables, arguments) = (variables.collect::<String>(), arguments.collect::<String>());
    format!("{variables}{program}{arguments}")
}

/// How many tests passed by a line of the test runner, 0 if it is no summary.
fn passed_tests(line: &str) -> usize {
    line.split_once("test result: ok. ")
        .and_then(|(_, rest)| rest.split_once(" passed;")?.0.parse().ok())
        .unwrap_or(0)
}

/// Whether there is [`NODE`]: earlier ones refuse the flag with which the scripts talk to a browser.
pub fn has_node() -> bool {
    succeeds(Command::new("node").args(["--experimental-websocket", "--version"]))
}

/// Runs a program, or says that it is missing.
pub fn tool(name: &str, arguments: &[&str]) -> Result<(), String> {
    match exists(name) {
        true => run(program(name).args(arguments)),
        false => skip(&format!("`{name} {}` needs {name}", arguments.join(" "))),
    }
}

/// Says that what `needs` a missing program is skipped, or fails if [`ALLOW_MISSING_TOOLS`] is not set.
pub fn skip(needs: &str) -> Result<(), String> {
    if !is_1(ALLOW_MISSING_TOOLS) {
        return Err(format!(
            "{needs}; {ALLOW_MISSING_TOOLS}=1 skips what needs a missing program"
        ));
    }
    eprintln!("\nskipped: {needs}");
    Ok(())
}

/// Whether this variable of the environment is set to 1.
pub fn is_1(variable: &str) -> bool {
    env::var_os(variable).is_some_and(|value| value == "1")
}

/// Whether `program` answers to `--version`.
pub fn exists(program: &str) -> bool {
    succeeds(Command::new(program).arg("--version"))
}

/// Whether a command can be run and does not fail; what it prints is not shown.
pub fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
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
