#![doc = include_str!("../README.md")]

mod batches;
mod bleu;
mod checkpoint;
mod cli;
mod commands;
mod curve;
mod data;
mod error;
mod evaluate;
mod explain;
mod files;
mod folder;
mod minutes;
mod precision;
mod progress;
mod report;
mod resume_args;
mod run_config;
mod schedule;
mod state;
mod story;
mod train_args;
mod trainer;
mod translate;
mod translator;
mod vocabulary;

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    // A missing GPU, for example, panics inside Burn: that too becomes one sentence, unless RUST_BACKTRACE asks for more.
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
    match catch_unwind(AssertUnwindSafe(|| commands::run(cli))) {
        Ok(Ok(code)) => ExitCode::from(code),
        Ok(Err(error)) => {
            complain(&error.to_string());
            ExitCode::FAILURE
        }
        Err(_) => ExitCode::FAILURE,
    }
}

/// Prints an error. Where it cannot be written, as in a log on a full disk, the exit code has to do.
fn complain(error: &str) {
    let _ = writeln!(std::io::stderr(), "error: {error}");
}
