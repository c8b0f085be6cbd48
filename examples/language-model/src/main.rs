#![doc = include_str!("../README.md")]

mod cli;
mod continuation;
mod folder;
mod learn;
mod samples;
mod text;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};

fn main() -> ExitCode {
    let cli = Cli::parse();
    example_common::memory::keep_freed();
    example_common::exit::run(|| match cli.command {
        Command::Train(args) => learn::train(&args),
        Command::Continue(args) => continuation::print(&args).map(|()| 0),
    })
}
