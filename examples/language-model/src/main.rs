#![doc = include_str!("../README.md")]

mod checkpoints;
mod cli;
mod continuation;
mod error;
mod folder;
mod learn;
mod plain;
mod samples;
mod text;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};

fn main() -> ExitCode {
    let cli = Cli::parse();
    // A missing GPU, for example, panics inside Burn: that too becomes one sentence, unless RUST_BACKTRACE asks for more.
    if std::env::var_os("RUST_BACKTRACE").is_none() {
        std::panic::set_hook(Box::new(|panic| {
            let message = panic.payload_as_str().unwrap_or("unknown reason");
            eprintln!("error: gave up: {message} (RUST_BACKTRACE=1 shows where)");
        }));
    }
    let run = || match cli.command {
        Command::Train(args) => learn::train(&args),
        Command::Continue(args) => continuation::print(&args).map(|()| 0),
    };
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(code)) => ExitCode::from(code),
        Ok(Err(error)) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
        Err(_) => ExitCode::FAILURE,
    }
}
