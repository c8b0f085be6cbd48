//! Values that are refused.

use clap::Parser;

use super::*;
use crate::cli::{Cli, Command};

#[test]
fn bad_values_are_named_before_anything_is_read() {
    for (options, expected) in [
        ("--d-model 30 --heads 4", "30"),
        ("--dropout 1", "dropout"),
        ("--layers 0", "0"),
        ("--batch 0", "--batch must be at least 1, got 0"),
        ("--epochs 0", "--epochs must be at least 1, got 0"),
        ("--steps 0", "--steps must be at least 1, got 0"),
        ("--smoothing 1.5", "--smoothing must be in [0, 1), got 1.5"),
        (
            "--learning-rate NaN",
            "--learning-rate must be greater than 0, got NaN",
        ),
        (
            "--learning-rate 3",
            "--learning-rate must be at most 1, got 3",
        ),
        (
            "--vocabulary 100",
            "--vocabulary must be at least 260 (4 special tokens and 256 bytes), got 100",
        ),
        ("--average 5", "--average must be at least 10 steps, got 5"),
        ("--data /no/such.tsv", "cannot read /no/such.tsv: "),
    ] {
        let words = ["translation", "train"].into_iter();
        let cli = Cli::parse_from(words.chain(options.split(' ')));
        let Some(Command::Train { args, .. }) = cli.command else {
            panic!("{options}")
        };
        let message = RunConfig::new(&args).unwrap_err().to_string();
        match expected.starts_with("--") {
            true => assert_eq!(message, expected),
            false => assert!(message.contains(expected), "{message}"),
        }
        // Each names the value too.
        let value = options.split(' ').next_back().unwrap();
        assert!(message.contains(value), "{message}");
    }
}
