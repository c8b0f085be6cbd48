//! Rows in the terminal.

use crate::case::{Case, Measure};
use crate::run::{Missing, Row, Run};
use crate::text::{mebibytes, percent, significant, threads};

/// The columns of the table: title, and width of what is not a name.
const COLUMNS: [(&str, usize); 8] = [
    ("case", 0),
    ("peer", 0),
    ("ours ms", 9),
    ("peer ms", 9),
    ("ratio", 12),
    ("spread", 12),
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

/// The table of a suite.
pub struct Table {
    /// Of each column.
    widths: [usize; COLUMNS.len()],
}

impl Table {
    /// With room for the names of these cases and their peers.
    pub fn new(cases: &[Case]) -> Self {
        let mut widths = COLUMNS.map(|(title, width)| width.max(title.len()));
        for case in cases {
            widths[0] = widths[0].max(case.name.chars().count());
            for peer in &case.peers {
                widths[1] = widths[1].max(peer.name.chars().count());
            }
        }
        Self { widths }
    }

    /// Starts the table; `peak` says what its rates are shares of.
    pub fn print_header(&self, suite: &str, peak: &str) {
        println!("\n{suite} ({peak})");
        println!("{}", self.line(COLUMNS.map(|(title, _)| title.into())));
        println!("{}", self.line(self.widths.map(|width| "-".repeat(width))));
    }

    pub fn print_row(&self, row: &Row) {
        println!("{}", self.row(row));
    }

    /// The line of a peer without numbers.
    pub fn print_missing(&self, missing: &Missing) {
        let [case_width, peer_width, ..] = self.widths;
        let Missing {
            case, peer, why, ..
        } = missing;
        println!("| {case:case_width$} | {peer:peer_width$} | {why} |");
    }

    fn row(&self, row: &Row) -> String {
        self.line([
            row.case.clone(),
            row.peer.clone(),
            significant(1e3 * row.ours_seconds, 4),
            significant(1e3 * row.peer_seconds, 4),
            match row.measure {
                Measure::Time => format!("{:.2}", row.ratio),
                Measure::Rate => format!("{} FLOP/s", percent(Some(row.ratio))),
                Measure::Memory => format!("{:.2} memory", row.ratio),
            },
            [row.ours_spread, row.peer_spread].map(percent).join(", "),
            mebibytes(row.ours_peak_bytes),
            mebibytes(row.peer_peak_bytes),
        ])
    }

    /// Words to the left, numbers to the right.
    fn line(&self, cells: [String; COLUMNS.len()]) -> String {
        let mut line = String::from("|");
        for (index, (cell, width)) in cells.iter().zip(self.widths).enumerate() {
            line += &match index {
                0 | 1 => format!(" {cell:width$} |"),
                _ => format!(" {cell:>width$} |"),
            };
        }
        line
    }
}

#[cfg(test)]
mod tests;
