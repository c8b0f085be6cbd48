//! The command line.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// Measures burn-attn against Burn, burn-nn, candle and PyTorch, side by side in one run.
///
/// Every contestant is a process of its own; they are sampled in turns and only one computes at a time. Results are
/// compared, ours with an f64 oracle and peers with ours, before they are timed. A ratio above 1 means ours is faster.
/// PyTorch is measured by `python3`, or by the interpreter in BURN_ATTN_PYTHON.
#[derive(Debug, Parser)]
pub struct Arguments {
    /// What to measure; everything without one.
    #[arg(value_enum)]
    pub suites: Vec<Suite>,
    /// Writes the run to this file: machine, versions, rows. It is written after every suite.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Measures nothing: writes BENCHMARKS.md from the runs in crates/bench/results.
    #[arg(long, conflicts_with_all = ["json", "quick", "filter", "threads"])]
    pub report: bool,
    /// Fewer cases, fewer samples.
    #[arg(long)]
    pub quick: bool,
    /// Only the cases whose name, such as "op training causal 1024", contains this.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub filter: String,
    /// Threads of every contestant; without it, as many as there are cores.
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Is one of the contestants.
    #[arg(long, hide = true)]
    pub contestant: bool,
}

/// A list of cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Suite {
    /// The attention operation.
    Op,
    /// A training step of the attention modules.
    Module,
    /// One query against many keys.
    Decode,
    /// A training step of an encoder–decoder.
    Translation,
    /// Models of published sizes, of random numbers, beside Hugging Face's transformers.
    Models,
    /// The blockwise body, which backends without kernels run: memory and time.
    Blockwise,
}
