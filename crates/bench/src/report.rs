//! Rows in the terminal.

use crate::case::Measure;
use crate::run::{Row, Run};
use crate::text::{significant, threads};

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
    let [ours, burn, candle] = [&versions.burn_attn, &versions.burn, &versions.candle];
    let device = &run.device;
    println!("burn-attn {ours} · Burn {burn} on {device} · candle-nn {candle} · {pytorch}");
    let (cpu, instructions) = (&run.machine.cpu, &run.machine.instructions);
    println!("{cpu} · {instructions} · {}", threads(run.threads));
}

/// Starts the table of a suite; `peak` says what its rates are shares of.
pub fn print_header(suite: &str, peak: &str) {
    println!("\n{suite} ({peak})");
    print_cells(COLUMNS.map(|(title, _)| title.to_string()));
    print_cells(COLUMNS.map(|(_, width)| "-".repeat(width)));
}

pub fn print_row(row: &Row) {
    let mebibytes = |bytes: Option<u64>| match bytes {
        Some(bytes) => format!("{:.1}", bytes as f64 / f64::from(1 << 20)),
        None => String::new(),
    };
    print_cells([
        row.case.clone(),
        row.peer.clone(),
        significant(1e3 * row.ours_seconds, 4),
        significant(1e3 * row.peer_seconds, 4),
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

/// How far samples lie apart.
fn percent(spread: Option<f64>) -> String {
    spread.map_or("–".into(), |spread| format!("{:.0}%", 100.0 * spread))
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
