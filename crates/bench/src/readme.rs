//! The table of speed in the README: a few rows, what wins and what loses, for each kind of vectors in `results/` of the newest run that has
//! the row. The heads of the columns name the processors of those runs.

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

/// The threads of which the README speaks.
const THREADS: usize = 2;

/// The numbers of processors with the same vector instructions.
struct Column<'a> {
    instructions: &'a str,
    /// Whose numbers they are.
    processors: Vec<String>,
}

/// The README with the table of these runs in place of the one that is there, unless it has no place for it, or no run has such a row.
pub fn with_table(readme: &str, runs: &[Run]) -> Result<String, String> {
    let missing = |mark: &str| format!("README.md has no line {}", mark.trim());
    let (before, rest) = readme.split_once(MARKS[0]).ok_or(missing(MARKS[0]))?;
    let (_, after) = rest.split_once(MARKS[1]).ok_or(missing(MARKS[1]))?;
    let has_rows = |run: &Run| {
        ROWS.lines().any(|row| {
            let [_, suite, case] = parts(row);
            rows(run, suite, case).next().is_some()
        })
    };
    let alike =
        |run: &&Run| !run.quick && run.on_processor() && run.threads == THREADS && has_rows(run);
    let mut runs: Vec<&Run> = runs.iter().filter(alike).collect();
    // By time; where runs name the day alone, in the order of their files.
    runs.sort_by_key(|run| &run.date);
    Ok([before, MARKS[0], &table(&runs)?, MARKS[1], after].concat())
}

pub fn committed() -> Result<String, String> {
    fs::read_to_string(FILE).map_err(|error| format!("{FILE}: {error}"))
}

/// The table of these runs, the newest last.
fn table(runs: &[&Run]) -> Result<String, String> {
    let mut columns = columns(runs);
    let mut lines = String::new();
    for row in ROWS.lines() {
        let [name, suite, case] = parts(row);
        let has_row = |run: &&Run| rows(run, suite, case).next().is_some();
        if !runs.iter().any(has_row) {
            return Err(format!("no run has a row {case:?} of {suite}"));
        }
        lines += &format!("| {name} |");
        for column in &mut columns {
            let alike = |run: &&Run| instructions_of(run) == column.instructions;
            let newest = runs.iter().copied().filter(alike).rfind(has_row);
            for peers in [&["pytorch"][..], &["burn", "burn-nn"]] {
                let fits =
                    |row: &&Row| row.measure == Measure::Time && peers.contains(&row.peer.as_str());
                let row = newest.and_then(|run| rows(run, suite, case).find(fits));
                let ratio = row.map_or("–".into(), ratio);
                lines += &format!(" {ratio} |");
            }
            let processor = newest.map(|run| run.machine.microarchitecture());
            if let Some(processor) = processor
                && !column.processors.contains(&processor)
            {
                column.processors.push(processor);
            }
        }
        lines += "\n";
    }
    let mut text = String::from("| work |");
    for column in &columns {
        let processors = column.processors.join(" and ");
        let head = format!("{processors} ({})", column.instructions);
        text += &format!(" PyTorch, {head} | Burn, {head} |");
    }
    text += &format!("\n| --- |{}\n", " --- | --- |".repeat(columns.len()));
    Ok(text + &lines)
}

/// What a row is called, its suite and its case.
fn parts(row: &str) -> [&str; 3] {
    let mut parts = row.split(" | ");
    [(); 3].map(|()| parts.next().expect("a row has three parts"))
}

fn rows<'a>(run: &'a Run, suite: &'a str, case: &'a str) -> impl Iterator<Item = &'a Row> {
    let rows = run.rows.iter();
    rows.filter(move |row| row.suite == suite && row.case == case)
}

/// A column for the vector instructions of each run, in the order of their first runs.
fn columns<'a>(runs: &[&'a Run]) -> Vec<Column<'a>> {
    let mut columns: Vec<Column<'_>> = Vec::new();
    for instructions in runs.iter().copied().map(instructions_of) {
        let mut known = columns.iter();
        if !known.any(|column| column.instructions == instructions) {
            columns.push(Column {
                instructions,
                processors: Vec::new(),
            });
        }
    }
    columns
}

/// "AVX2" of "AVX2 with FMA".
fn instructions_of(run: &Run) -> &str {
    let instructions = &run.machine.instructions;
    instructions.split(' ').next().unwrap_or(instructions)
}

#[cfg(test)]
mod tests;
