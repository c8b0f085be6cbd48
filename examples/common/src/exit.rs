//! How a program ends: with an exit code, and one sentence if something went wrong.

use std::{
    fmt::Display,
    io::Write,
    panic::{AssertUnwindSafe, catch_unwind},
    process::ExitCode,
};

/// Runs a program that returns its exit code. An error becomes one sentence and exit code 1. So does a panic, of Burn where there is
/// no GPU for example, unless `RUST_BACKTRACE` asks for more.
pub fn run<E: Display>(program: impl FnOnce() -> Result<u8, E>) -> ExitCode {
    if std::env::var_os("RUST_BACKTRACE").is_none() {
        std::panic::set_hook(Box::new(|panic| {
            let message = panic.payload_as_str().unwrap_or("unknown reason");
            // A reader that closes the pipe has read enough.
            if !message.starts_with("failed printing to stdout") {
                complain(&format!(
                    "gave up: {message} (RUST_BACKTRACE=1 shows where)"
                ));
            }
        }));
    }
    match catch_unwind(AssertUnwindSafe(program)) {
        Ok(Ok(code)) => ExitCode::from(code),
        Ok(Err(error)) => {
            complain(&error.to_string());
            ExitCode::FAILURE
        }
        Err(_) => ExitCode::FAILURE,
    }
}

/// Prints an error. Where it cannot be written, the exit code has to do.
fn complain(error: &str) {
    warn(&format!("error: {error}"));
}

/// Prints a line on standard error. Where it cannot be written, as in a log on a full disk, the program goes on without it, while
/// `eprintln!` would end it.
pub fn warn(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
