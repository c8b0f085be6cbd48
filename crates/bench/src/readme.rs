//! The table of speed in the README: a few rows of the first run in `results/`, what wins and what loses.

use std::fs;

use crate::case::Measure;
use crate::markdown::significant;
use crate::run::Run;

/// What is changed.
pub const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");

/// What stands around the table.
const MARKS: [&str; 2] = ["<!-- speed -->\n", "<!-- end of speed -->\n"];

/// The rows: what they are called, and their suites and cases.
const ROWS: [(&str, &str, &str); 11] = [
    (
        "attention forward, causal, length 1024",
        "op",
        "forward causal 1024",
    ),
    (
        "attention forward, full, length 4096",
        "op",
        "forward full 4096",
    ),
    (
        "attention training, causal, length 1024",
        "op",
        "training causal 1024",
    ),
    (
        "attention training, full, length 2048",
        "op",
        "training full 2048",
    ),
    (
        "attention training, padding, length 1024",
        "op",
        "training 1024 padding",
    ),
    (
        "`MultiHeadAttention`, width 512, training, length 1024",
        "module",
        "MultiHeadAttention 1024",
    ),
    (
        "`CrossAttention`, width 512, training, 256 on 1024",
        "module",
        "CrossAttention 256 on 1024",
    ),
    (
        "translator, a whole step, width 256, 3 + 3 layers",
        "translation",
        "d 256, 3+3 layers, len 24",
    ),
    (
        "512 tokens one by one, width 512, 6 layers",
        "decode",
        "512 tokens, 6 layers, batch 1",
    ),
    (
        "MiniLM, 32 texts of 128 tokens",
        "models",
        "MiniLM, batch 32, len 128",
    ),
    (
        "a Llama of 125 M, 128 tokens one by one",
        "models",
        "Llama, 125 M, 128 tokens after 8",
    ),
];

/// The README with the table of this run in place of the one that is there.
///
/// # Errors
///
/// When the README has no place for it, or the run no such row.
pub fn with_table(readme: &str, run: &Run) -> Result<String, String> {
    let missing = |mark: &str| format!("README.md has no line {}", mark.trim());
    let (before, rest) = readme.split_once(MARKS[0]).ok_or(missing(MARKS[0]))?;
    let (_, after) = rest.split_once(MARKS[1]).ok_or(missing(MARKS[1]))?;
    Ok([before, MARKS[0], &table(run)?, MARKS[1], after].concat())
}

/// The README as it is.
pub fn committed() -> Result<String, String> {
    fs::read_to_string(FILE).map_err(|error| format!("{FILE}: {error}"))
}

fn table(run: &Run) -> Result<String, String> {
    let mut text = String::from("| work | PyTorch | Burn |\n| --- | --- | --- |\n");
    for (name, suite, case) in ROWS {
        let mut rows = run.rows.iter();
        if !rows.any(|row| row.suite == suite && row.case == case) {
            return Err(format!("the run has no row {case:?} of {suite}"));
        }
        let ratio = |peers: &[&str]| {
            let mut rows = run.rows.iter();
            let row = rows.find(|row| {
                row.suite == suite
                    && row.measure == Measure::Time
                    && row.case == case
                    && peers.contains(&row.peer.as_str())
            });
            row.map_or("–".into(), |row| significant(row.ratio, 2))
        };
        let (pytorch, burn) = (ratio(&["pytorch"]), ratio(&["burn", "burn-nn"]));
        text += &format!("| {name} | {pytorch} | {burn} |\n");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::markdown::committed_runs;

    #[test]
    fn the_table_is_that_of_the_first_run() {
        let runs = committed_runs().unwrap();
        let readme = committed().unwrap();
        assert!(
            with_table(&readme, &runs[0]).unwrap() == readme,
            "the table of speed in README.md is written by `cargo run -p burn-attn-bench --no-default-features -- --report`"
        );
    }

    #[test]
    fn a_place_and_all_rows_are_needed() {
        let runs = committed_runs().unwrap();
        let mut run = runs[0].clone();
        assert_eq!(
            with_table("# burn-attn\n", &run).unwrap_err(),
            "README.md has no line <!-- speed -->"
        );
        run.rows.retain(|row| row.suite != "module");
        assert_eq!(
            with_table("<!-- speed -->\n<!-- end of speed -->\n", &run).unwrap_err(),
            "the run has no row \"MultiHeadAttention 1024\" of module"
        );
    }
}
