//! BENCHMARKS.md, from the runs in `results/`.

use std::fs;
use std::path::Path;

use crate::case::Measure;
use crate::machine::Pytorch;
use crate::run::{Missing, Row, Run};
use crate::text::{matmul_peaks, mebibytes, percent, significant, threads};

/// What is written.
pub const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../BENCHMARKS.md");

/// Where the runs are.
const RESULTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/results");

/// What stands before the runs.
const HEAD: &str = include_str!("prose/head.md");

/// The suites in words: what the rows are, who the peers are, what was compared, and where a peer is at a disadvantage.
const SUITES: [(&str, &str); 7] = [
    ("op", include_str!("prose/op.md")),
    ("module", include_str!("prose/module.md")),
    ("decode", include_str!("prose/decode.md")),
    ("translation", include_str!("prose/translation.md")),
    ("models", include_str!("prose/models.md")),
    ("blockwise", include_str!("prose/blockwise.md")),
    ("gpu", include_str!("prose/gpu.md")),
];

const COLUMNS: [&str; 8] = [
    "case",
    "peer",
    "ms: ours, peer",
    "ratio",
    "spread: ours, peer",
    "ours GFLOP/s",
    "peer GFLOP/s",
    "MiB: ours, peer",
];

/// All runs in `results/`, in the order of their names.
pub fn committed_runs() -> Result<Vec<Run>, String> {
    let said = |path: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let folder = Path::new(RESULTS);
    let entries = fs::read_dir(folder).map_err(|error| said(folder, &error))?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let paths: Result<Vec<_>, _> = paths.collect();
    let mut paths = paths.map_err(|error| said(folder, &error))?;
    paths.retain(|path| path.extension().is_some_and(|end| end == "json"));
    paths.sort();
    let read = |path: &std::path::PathBuf| {
        let json = fs::read_to_string(path).map_err(|error| said(path, &error))?;
        serde_json::from_str(&json).map_err(|error| said(path, &error))
    };
    paths.iter().map(read).collect()
}

/// The whole file.
pub fn report(runs: &[Run]) -> String {
    let mut text = String::from(HEAD);
    let mut explained = Vec::new();
    for run in runs {
        let (cpu, threads) = (&run.machine.cpu, threads(run.threads));
        let device = &run.device;
        let day = run.date.split('T').next().unwrap_or_default();
        text += &format!("\n## {cpu}, {threads}, {device}, {day}\n\n");
        text += &description(run);
        for (suite, prose) in SUITES {
            let rows: Vec<_> = run.rows.iter().filter(|row| row.suite == suite).collect();
            let missing = run.missing.iter();
            let missing: Vec<_> = missing.filter(|row| row.suite == suite).collect();
            if rows.is_empty() && missing.is_empty() {
                continue;
            }
            text += &format!("\n### {suite}\n\n");
            if !explained.contains(&suite) {
                text += prose;
                text += "\n";
                explained.push(suite);
            }
            text += &table(&rows, |row| run.peak(row));
            text += &unmeasured(&missing);
        }
    }
    text
}

/// Machine, versions and command of a run.
fn description(run: &Run) -> String {
    let (machine, versions) = (&run.machine, &run.versions);
    let place = match machine.virtual_machine {
        true => ", a virtual machine",
        false => "",
    };
    let peak = match run.fma_peak {
        Some(peak) => format!("{} GFLOP/s", significant(peak, 3)),
        None => "not measured".into(),
    };
    let (processors, used) = (machine.processors, threads(run.threads));
    let pytorch = versions.pytorch.as_ref();
    let transformers = pytorch.and_then(|pytorch| pytorch.transformers.clone());
    let not_there = || "not there".to_string();
    let mut lines = vec![
        ("processor", format!("{}{place}", machine.cpu)),
        ("processors", format!("{processors}, {used} used")),
        ("vectors of our kernels", machine.instructions.clone()),
        ("peak of f32 multiply-adds", peak),
        ("system", machine.os.clone()),
        (
            "burn-attn",
            format!("{}, {}", versions.burn_attn, versions.rustc),
        ),
        (
            "Burn, burn-nn",
            format!("{}, device {}", versions.burn, run.device),
        ),
        ("candle-nn", versions.candle.clone()),
        ("PyTorch", pytorch.map_or_else(not_there, described)),
        ("transformers", transformers.unwrap_or_else(not_there)),
        ("date", run.date.clone()),
        ("command", format!("`{}`", run.command)),
    ];
    if !run.matmul_peaks.is_empty() {
        let peaks = matmul_peaks(&run.matmul_peaks);
        lines.push(("products of matrices on the device", peaks));
    }
    if run.quick {
        lines.push((
            "only a look",
            "few cases, two or three samples of each (one where it takes 10 s): not for comparisons".into(),
        ));
    }
    let lines = lines.iter().map(|(name, value)| cells(&[name, value]));
    format!("| | |\n| --- | --- |\n{}", lines.collect::<String>())
}

fn described(pytorch: &Pytorch) -> String {
    let products = match pytorch.mkl {
        true => "with MKL",
        false => "without MKL",
    };
    let parts = [&pytorch.version, products, &pytorch.instructions].join(", ");
    let card = pytorch.card.as_ref().map(|card| format!(", {card}"));
    let card = card.unwrap_or_default();
    format!("{parts}, Python {}{card}", pytorch.python)
}

fn table(rows: &[&Row], peak: impl Fn(&Row) -> Option<f64>) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut text = cells(&COLUMNS);
    text += "| --- | --- | --: | --: | --: | --: | --: | --: |\n";
    for row in rows {
        let peer = match &row.peer_note {
            Some(note) => format!("{} ({note})", row.peer),
            None => row.peer.clone(),
        };
        let times = [row.ours_seconds, row.peer_seconds];
        let spreads = [row.ours_spread, row.peer_spread];
        text += &cells(&[
            &row.case,
            &peer,
            &times
                .map(|seconds| significant(1e3 * seconds, 2))
                .join(", "),
            &ratio(row),
            &spreads.map(percent).join(", "),
            &rate(row.ours_operations, row.ours_seconds, peak(row)),
            &rate(row.peer_operations, row.peer_seconds, peak(row)),
            &memory(row),
        ]);
    }
    text
}

/// Peers without numbers.
fn unmeasured(missing: &[&Missing]) -> String {
    if missing.is_empty() {
        return String::new();
    }
    let lines = missing
        .iter()
        .map(|row| format!("- {}, {}: {}\n", row.case, row.peer, row.why));
    format!("\nNot measured:\n\n{}", lines.collect::<String>())
}

/// Two digits; with ≈ before it, the samples do not tell the two apart. The rule is the same for a ratio and its inverse.
pub fn ratio(row: &Row) -> String {
    let [ours, peer] = [row.ours_spread, row.peer_spread].map(|spread| spread.unwrap_or(0.0));
    let same = match row.ratio.max(1.0 / row.ratio) - 1.0 <= ours.max(peer) {
        true => "≈ ",
        false => "",
    };
    // A single sample has no spread, which must not look like a spread of 0.
    let single = match (row.ours_spread, row.peer_spread) {
        (Some(_), Some(_)) => "",
        _ => " (one sample)",
    };
    let number = significant(row.ratio, 2);
    match row.measure {
        Measure::Time => format!("{same}{number}{single}"),
        Measure::Rate => format!("{same}{number} of the rate{single}"),
        Measure::Memory => format!("{number} of the memory"),
    }
}

/// GFLOP/s and, if the peak is known, its share of the peak.
fn rate(operations: Option<f64>, seconds: f64, peak: Option<f64>) -> String {
    let Some(operations) = operations else {
        return "–".into();
    };
    let rate = 1e-9 * operations / seconds;
    match peak {
        Some(peak) => format!("{} ({})", significant(rate, 2), percent(Some(rate / peak))),
        None => significant(rate, 2),
    }
}

fn memory(row: &Row) -> String {
    match (row.ours_peak_bytes, row.peer_peak_bytes) {
        (None, None) => "–".into(),
        (ours, peer) => format!("{}, {}", mebibytes(ours), mebibytes(peer)),
    }
}

fn cells(cells: &[&str]) -> String {
    let cells = cells
        .iter()
        .map(|cell| format!(" {} |", cell.replace('|', "\\|")));
    format!("|{}\n", cells.collect::<String>())
}

#[cfg(test)]
mod tests;
