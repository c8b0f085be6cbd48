//! How a program ends: with an exit code, and one sentence if something went wrong.

use std::{
    fmt::Display,
    io::{ErrorKind, Write},
    panic::{AssertUnwindSafe, catch_unwind},
    process::ExitCode,
};

/// How the panic of `println!` begins.
const PRINTING: &str = "failed printing to stdout: ";
/// The system's error numbers for a closed pipe; its error messages may be translated.
const CLOSED_PIPE: &[i32] = if cfg!(windows) { &[109, 232] } else { &[32] };

/// Exit code of a program that Ctrl-C has stopped.
pub const STOPPED: u8 = 130;

/// Runs a program that returns its exit code. An error becomes one sentence and exit code 1. So does a panic, of Burn where there is
/// no GPU for example, unless `RUST_BACKTRACE` asks for more. A reader that closes the pipe has read enough: then the code is 0.
pub fn run<E: Display>(program: impl FnOnce() -> Result<u8, E>) -> ExitCode {
    if std::env::var_os("RUST_BACKTRACE").is_none() {
        std::panic::set_hook(Box::new(|panic| {
            let message = panic.payload_as_str().unwrap_or("unknown reason");
            if !is_closed_pipe(message) {
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
        Err(payload) => {
            let message = payload.downcast_ref::<String>();
            match message.is_some_and(|message| is_closed_pipe(message)) {
                true => ExitCode::SUCCESS,
                false => ExitCode::FAILURE,
            }
        }
    }
}

fn is_closed_pipe(message: &str) -> bool {
    let reason = message.strip_prefix(PRINTING);
    reason.is_some_and(|reason| {
        let mut codes = CLOSED_PIPE.iter();
        codes.any(|code| reason.ends_with(&format!("(os error {code})")))
    })
}

/// Prints an error. Where it cannot be written, the exit code alone reports it.
fn complain(error: &str) {
    warn(&format!("error: {error}"));
}

/// Prints a piece of a line at once.
///
/// # Panics
/// Where it cannot be written, as `print!` does, for which [`run`] is prepared.
pub fn print(piece: &str) {
    print_and_go_on(piece, false);
}

/// [`print`] of a program that may have more to do than printing: then it `goes_on` where the reader has closed the pipe.
pub(crate) fn print_and_go_on(piece: &str, goes_on: bool) {
    let mut out = std::io::stdout();
    if let Err(error) = write!(out, "{piece}").and_then(|()| out.flush())
        && !(goes_on && error.kind() == ErrorKind::BrokenPipe)
    {
        panic!("{PRINTING}{error}");
    }
}

/// Prints a line on standard output. Where it cannot be written, as into a closed pipe, a training goes on without it.
pub fn println(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Prints a line on standard error. Where it cannot be written, as in a log on a full disk, the program goes on without it, while
/// `eprintln!` would end it.
pub fn warn(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

#[cfg(test)]
mod tests;
