//! The command line.

use clap::CommandFactory;

use super::*;

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn the_folder_may_follow_the_command() {
    let cli = Cli::parse_from(["translation", "evaluate", "--out", "run"]);
    assert_eq!(cli.shared.out, PathBuf::from("run"));
}
