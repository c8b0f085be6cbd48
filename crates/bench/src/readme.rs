//! The table of speed in the README: a few rows, what wins and what loses, for each kind of processor in `results/` of the newest run that has
//! the row.

use std::fs;

use crate::case::Measure;
use crate::markdown::ratio;
use crate::run::{Row, Run};

/// What is changed.
pub const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");

/// What stands around the table.
const MARKS: [&str; 2] = ["<!-- speed -->\n", "<!-- end of speed -->\n"];

/// The rows, a line each: what it is called, its suite and its case.
const ROWS: &str = include_str!("prose/speed.txt");

/// The README with the table of these runs in place of the one that is there, unless it has no place for it, or no run has such a row.
pub fn with_table(readme: &str, runs: &[Run]) -> Result<String, String> {
    let missing = |mark: &str| format!("README.md has no line {}", mark.trim());
    let (before, rest) = readme.split_once(MARKS[0]).ok_or(missing(MARKS[0]))?;
    let (_, after) = rest.split_once(MARKS[1]).ok_or(missing(MARKS[1]))?;
    Ok([before, MARKS[0], &table(runs)?, MARKS[1], after].concat())
}

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
        let has_row = |run: &&Run| rows(run, suite, case).next().is_some();
        if !runs.iter().any(|run| has_row(&run)) {
            return Err(format!("no run has a row {case:?} of {suite}"));
        }
        text += &format!("| {name} |");
        for instructions in &processors {
            let alike = |run: &&Run| instructions_of(run) == *instructions;
            let newest = runs.iter().filter(alike).filter(has_row);
            let newest = newest.max_by_key(|run| &run.date);
            for peers in [&["pytorch"][..], &["burn", "burn-nn"]] {
                let fits =
                    |row: &&Row| row.measure == Measure::Time && peers.contains(&row.peer.as_str());
                let row = newest.and_then(|run| rows(run, suite, case).find(fits));
                let ratio = row.map_or("–".into(), ratio);
                text += &format!(" {ratio} |");
            }
        }
        text += "\n";
    }
    Ok(text)
}

fn rows<'a>(run: &'a Run, suite: &'a str, case: &'a str) -> impl Iterator<Item = &'a Row> {
    let rows = run.rows.iter();
    rows.filter(move |row| row.suite == suite && row.case == case)
}

/// The vector instructions of all runs, in the order of their first runs.
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
