//! The table of speed in the README: a few rows, each of the newest run in `results/` that has it, what wins and what loses.

use std::fs;

use crate::case::Measure;
use crate::markdown::significant;
use crate::report::Row;
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

/// The README with the table of these runs in place of the one that is there.
///
/// # Errors
///
/// When the README has no place for it, or no run has such a row.
pub fn with_table(readme: &str, runs: &[Run]) -> Result<String, String> {
    let missing = |mark: &str| format!("README.md has no line {}", mark.trim());
    let (before, rest) = readme.split_once(MARKS[0]).ok_or(missing(MARKS[0]))?;
    let (_, after) = rest.split_once(MARKS[1]).ok_or(missing(MARKS[1]))?;
    Ok([before, MARKS[0], &table(runs)?, MARKS[1], after].concat())
}

/// The README as it is.
pub fn committed() -> Result<String, String> {
    fs::read_to_string(FILE).map_err(|error| format!("{FILE}: {error}"))
}

fn table(runs: &[Run]) -> Result<String, String> {
    let mut text = String::from("| work | PyTorch | Burn |\n| --- | --- | --- |\n");
    for (name, suite, case) in ROWS {
        let of_case = |row: &&Row| row.suite == suite && row.case == case;
        let with_row = runs
            .iter()
            .filter(|run| run.rows.iter().any(|row| of_case(&row)));
        let run = with_row.max_by_key(|run| &run.date);
        let run = run.ok_or_else(|| format!("no run has a row {case:?} of {suite}"))?;
        let ratio = |peers: &[&str]| {
            let mut rows = run.rows.iter().filter(of_case);
            let row =
                rows.find(|row| row.measure == Measure::Time && peers.contains(&row.peer.as_str()));
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
    fn the_table_is_that_of_the_committed_runs() {
        let runs = committed_runs().unwrap();
        let readme = committed().unwrap();
        assert!(
            with_table(&readme, &runs).unwrap() == readme,
            "the table of speed in README.md is written by `cargo run -p burn-attn-bench --no-default-features -- --report`"
        );
    }

    #[test]
    fn a_place_and_all_rows_are_needed() {
        let mut runs = committed_runs().unwrap();
        assert_eq!(
            with_table("# burn-attn\n", &runs).unwrap_err(),
            "README.md has no line <!-- speed -->"
        );
        for run in &mut runs {
            run.rows.retain(|row| row.suite != "module");
        }
        assert_eq!(
            with_table("<!-- speed -->\n<!-- end of speed -->\n", &runs).unwrap_err(),
            "no run has a row \"MultiHeadAttention 1024\" of module"
        );
    }

    #[test]
    fn a_row_is_that_of_the_newest_run() {
        let readme = "<!-- speed -->\n<!-- end of speed -->\n";
        let mut runs = committed_runs().unwrap();
        let mut newer = runs[0].clone();
        newer.date = "9999-12-31".into();
        newer.rows.retain(|row| row.suite == "translation");
        for row in &mut newer.rows {
            row.ratio = 42.0;
        }
        // Whatever their order.
        runs.insert(0, newer);
        let table = with_table(readme, &runs).unwrap();
        let of_newer: Vec<&str> = table
            .lines()
            .filter(|line| line.contains("| 42 |"))
            .collect();
        assert_eq!(
            of_newer,
            ["| translator, a whole step, width 256, 3 + 3 layers | 42 | 42 |"]
        );
    }
}
