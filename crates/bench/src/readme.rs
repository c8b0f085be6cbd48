//! The table of speed in the README: a few rows, what wins and what loses, for each kind of processor in `results/` of the newest run that has
//! the row.

use std::fs;

use crate::case::Measure;
use crate::text::significant;

use crate::run::{Row, Run};

/// What is changed.
pub const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");

/// What stands around the table.
const MARKS: [&str; 2] = ["<!-- speed -->\n", "<!-- end of speed -->\n"];

/// The rows, a line each: what it is called, its suite and its case.
const ROWS: &str = include_str!("prose/speed.txt");

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
    let processors = processors(runs);
    let mut text = String::from("| work |");
    for instructions in &processors {
        text += &format!(" PyTorch, {instructions} | Burn, {instructions} |");
    }
    text += &format!("\n| --- |{}\n", " --- | --- |".repeat(processors.len()));
    for row in ROWS.lines() {
        let mut parts = row.split(" | ");
        let mut part = || parts.next().expect("a row has three parts");
        let (name, suite, case) = (part(), part(), part());
        let rows_of = |run: &Run| -> Vec<Row> {
            let of_case = |row: &&Row| row.suite == suite && row.case == case;
            run.rows.iter().filter(of_case).cloned().collect()
        };
        if runs.iter().all(|run| rows_of(run).is_empty()) {
            return Err(format!("no run has a row {case:?} of {suite}"));
        }
        text += &format!("| {name} |");
        for instructions in &processors {
            let of_processor = runs
                .iter()
                .filter(|run| instructions_of(run) == *instructions && !rows_of(run).is_empty());
            let newest = of_processor.max_by_key(|run| &run.date);
            let rows = newest.map(rows_of).unwrap_or_default();
            let ratio = |peers: &[&str]| {
                let mut rows = rows.iter();
                let row = rows
                    .find(|row| row.measure == Measure::Time && peers.contains(&row.peer.as_str()));
                row.map_or("–".into(), |row| significant(row.ratio, 2))
            };
            let (pytorch, burn) = (ratio(&["pytorch"]), ratio(&["burn", "burn-nn"]));
            text += &format!(" {pytorch} | {burn} |");
        }
        text += "\n";
    }
    Ok(text)
}

/// The vector instructions of all runs, the longest known first.
fn processors(runs: &[Run]) -> Vec<&str> {
    let mut runs: Vec<&Run> = runs.iter().collect();
    runs.sort_by_key(|run| &run.date);
    let mut found = Vec::new();
    for instructions in runs.into_iter().map(instructions_of) {
        if !found.contains(&instructions) {
            found.push(instructions);
        }
    }
    found
}

/// "AVX2" of "AVX2 with FMA".
fn instructions_of(run: &Run) -> &str {
    let instructions = &run.machine.instructions;
    instructions.split(' ').next().unwrap_or(instructions)
}

#[cfg(test)]
mod tests;
