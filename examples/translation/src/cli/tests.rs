//! The command line.

use clap::CommandFactory;

use super::*;

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn options_may_follow_the_command() {
    let cli = Cli::parse_from([
        "translation",
        "explain",
        "a b",
        "--html",
        "x.html",
        "--out",
        "run",
        "--beam",
        "4",
    ]);
    assert_eq!(cli.shared.out, PathBuf::from("run"));
    let Some(Command::Explain {
        sentence, search, ..
    }) = cli.command
    else {
        panic!()
    };
    assert_eq!((sentence.as_str(), search.beam), ("a b", 4));
}
