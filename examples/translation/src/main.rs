#![doc = include_str!("../README.md")]

mod batches;
mod bleu;
mod checkpoint;
mod cli;
mod commands;
mod curve;
mod data;
mod demo;
mod evaluate;
mod explain;
mod precision;
mod progress;
mod report;
mod run_config;
mod schedule;
mod sentence;
mod trainer;
mod translate;
mod translator;
mod vocabulary;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    example_common::memory::keep_freed();
    example_common::exit::run(|| {
        let target = example_common::devices::choose(cli.shared.device)?;
        match cli.command {
            None => demo::run(&cli.shared, &target),
            Some(command) => commands::run(command, &cli.shared, &target),
        }
    })
}
