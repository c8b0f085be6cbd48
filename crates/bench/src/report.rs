//! Rows, and how they look in the terminal.

use std::collections::BTreeMap;
use std::mem;

use serde::{Deserialize, Serialize};

use crate::case::Measure;
use crate::markdown::significant;
use crate::run::Run;
use crate::work::Precision;

/// Ours against one peer in one case.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The suite.
    pub suite: String,
    /// The case.
    pub case: String,
    /// The peer.
    pub peer: String,
    /// What the ratio compares.
    pub measure: Measure,
    /// Of our tensors; earlier runs do not say it.
    #[serde(default)]
    pub precision: Option<Precision>,
    /// Our median seconds per iteration.
    pub ours_seconds: f64,
    /// The peer's.
    pub peer_seconds: f64,
    /// Operations of our matrix products in an iteration, if they are counted.
    pub ours_operations: Option<f64>,
    /// Of the peer's.
    pub peer_operations: Option<f64>,
    /// Over 1 where ours is ahead; of memory, where ours needs more.
    pub ratio: f64,
    /// Largest less smallest of our samples, over the median; none of a single one.
    pub ours_spread: Option<f64>,
    /// Of the peer's samples.
    pub peer_spread: Option<f64>,
    /// Extra peak memory of our first iteration.
    pub ours_peak_bytes: Option<u64>,
    /// Of the peer's.
    pub peer_peak_bytes: Option<u64>,
    /// What the peer says of how it computes, where that is not its fastest.
    pub peer_note: Option<String>,
}

/// The columns of the table: title and width.
const COLUMNS: [(&str, usize); 8] = [
    ("case", 38),
    ("peer", 12),
    ("ours ms", 9),
    ("peer ms", 9),
    ("ratio", 11),
    ("spread", 9),
    ("ours MiB", 8),
    ("peer MiB", 8),
];

/// What is measured, and on what.
pub fn print_run(run: &Run) {
    let versions = &run.versions;
    let pytorch = match &versions.pytorch {
        Some(pytorch) => format!("PyTorch {} ({})", pytorch.version, pytorch.instructions),
        None => "no PyTorch".into(),
    };
    println!(
        "burn-attn {} · Burn {} on {} · candle-nn {} · {pytorch}\n{} · {} · {}",
        versions.burn_attn,
        versions.burn,
        run.device,
        versions.candle,
        run.machine.cpu,
        run.machine.instructions,
        threads(run.threads),
    );
}

/// Starts the table of a suite; `peak` says what its rates are shares of.
pub fn print_header(suite: &str, peak: &str) {
    println!("\n{suite} ({peak})");
    print_cells(COLUMNS.map(|(title, _)| title.to_string()));
    print_cells(COLUMNS.map(|(_, width)| "-".repeat(width)));
}

/// One line of the table.
pub fn print_row(row: &Row) {
    let mebibytes = |bytes: Option<u64>| match bytes {
        Some(bytes) => format!("{:.1}", bytes as f64 / f64::from(1 << 20)),
        None => String::new(),
    };
    print_cells([
        row.case.clone(),
        row.peer.clone(),
        milliseconds(row.ours_seconds),
        milliseconds(row.peer_seconds),
        match row.measure {
            Measure::Time => format!("{:.2}", row.ratio),
            Measure::Rate => format!("{:.0}% FLOP/s", 100.0 * row.ratio),
            Measure::Memory => format!("{:.2} memory", row.ratio),
        },
        format!("{} {}", percent(row.ours_spread), percent(row.peer_spread)),
        mebibytes(row.ours_peak_bytes),
        mebibytes(row.peer_peak_bytes),
    ]);
}

/// The line of a peer without numbers.
pub fn print_missing(case: &str, peer: &str, why: &str) {
    let [case_width, peer_width] = [COLUMNS[0].1, COLUMNS[1].1];
    println!("| {case:case_width$} | {peer:peer_width$} | {why} |");
}

/// "1 thread", "2 threads".
pub fn threads(count: usize) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} thread{plural}")
}

/// "51200 GFLOP/s in f32, 612000 in bf16".
pub fn matmul_peaks(peaks: &BTreeMap<Precision, f64>) -> String {
    let mut unit = " GFLOP/s";
    let peaks = peaks.iter().map(|(precision, peak)| {
        let unit = mem::take(&mut unit);
        format!("{}{unit} in {}", significant(*peak, 3), precision.name())
    });
    match peaks.collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => "not known".into(),
        some => some,
    }
}

/// How far samples lie apart.
fn percent(spread: Option<f64>) -> String {
    spread.map_or("–".into(), |spread| format!("{:.0}%", 100.0 * spread))
}

/// Four significant digits.
fn milliseconds(seconds: f64) -> String {
    let milliseconds = 1e3 * seconds;
    let decimals = match milliseconds {
        ..1.0 => 4,
        ..10.0 => 3,
        ..100.0 => 2,
        ..1000.0 => 1,
        _ => 0,
    };
    format!("{milliseconds:.decimals$}")
}

/// Words to the left, numbers to the right.
fn print_cells(cells: [String; COLUMNS.len()]) {
    let mut line = String::from("|");
    for (index, (cell, (_, width))) in cells.iter().zip(COLUMNS).enumerate() {
        line += &match index {
            0 | 1 => format!(" {cell:width$} |"),
            _ => format!(" {cell:>width$} |"),
        };
    }
    println!("{line}");
}
