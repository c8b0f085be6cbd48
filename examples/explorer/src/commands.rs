//! The program's commands.

mod answer;
mod export;
mod one_file;
mod page_files;
mod serve;

use std::{path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};
use example_common::exit;

/// Follows one token of a sentence through every step of a translator's attention, in a browser.
#[derive(Parser)]
#[command(name = "explorer", version)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    /// The folder with the page
    #[arg(long, value_name = "FOLDER", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/page"), global = true)]
    page: PathBuf,
    /// The port of this computer on which the page is shown; 0 for any that is free
    #[arg(long, default_value_t = 8080)]
    port: u16,
}

#[derive(Subcommand)]
enum Command {
    /// Turn a run of the translator into a model of the page
    Export(export::ExportArgs),
    /// Write the whole page as one file, which a browser opens from the disk
    OneFile(one_file::OneFileArgs),
    /// Answer the page's requests, one a line in JSON, as the model in the browser does
    Answer(answer::AnswerArgs),
}

/// Runs what the command line asks for.
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    exit::run(|| {
        match &cli.command {
            None => serve::run(&cli.page, cli.port),
            Some(Command::Export(args)) => export::run(args, &cli.page),
            Some(Command::OneFile(args)) => one_file::run(args, &cli.page),
            Some(Command::Answer(args)) => answer::run(args, &cli.page),
        }
        .map(|()| 0)
    })
}
