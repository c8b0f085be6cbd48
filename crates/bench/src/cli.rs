//! The command line.

use std::num::NonZero;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use serde::Serialize;

use crate::text::name;

/// Measures burn-attn against Burn, burn-nn, candle and PyTorch, side by side in one run.
///
/// Every contestant is a process of its own; they are sampled in turns and only one computes at a time. A ratio above 1
/// means ours is faster. Before it is timed, a contestant computes the results once; 256 numbers of each result, or all of
/// a smaller one, and its mean absolute value are compared with ours, and a peer that differs gets no row. Ours is compared
/// with an f64 oracle in single calls of the operation: first batch item, first key/value head and, of more than 512
/// queries, the last 16 rows of output and query gradient. PyTorch is measured by `python3`, or by the interpreter in BURN_ATTN_PYTHON.
#[derive(Debug, Parser)]
pub struct Arguments {
    /// What to measure; without one, all that is for Burn's device: `blockwise` and, on a GPU, `gpu`, elsewhere all others.
    #[arg(value_enum)]
    pub suites: Vec<Suite>,
    /// Writes the run to this file: machine, versions, rows. It is written after every suite.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Measures nothing: writes BENCHMARKS.md and the README's table of speed from the runs in crates/bench/results.
    #[arg(long, conflicts_with_all = ["suites", "json", "quick", "filter", "threads"])]
    pub report: bool,
    /// Fewer cases, two or three samples of each.
    #[arg(long)]
    pub quick: bool,
    /// Only the cases whose name, such as "op training causal 1024", contains this.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub filter: String,
    /// Threads of every contestant; without it, as many as there are processors.
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZero<usize>>,
    /// Is one of the contestants.
    #[arg(long, hide = true)]
    pub contestant: bool,
}

/// A list of cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Suite {
    /// The attention operation.
    Op,
    /// A training step of the attention modules.
    Module,
    /// One query against many keys.
    Decode,
    /// A training step of an encoder–decoder.
    Translation,
    /// Whole models, of random numbers, beside Hugging Face's transformers.
    Models,
    /// The blockwise implementation, which calls without kernels run: memory and time.
    Blockwise,
    /// The kernels for GPUs, against Burn's operation and burn-nn's module, the other implementations, and PyTorch on a CUDA device.
    Gpu,
}

impl Suite {
    /// Whether it is for such a device, a GPU or a processor.
    fn is_for(self, on_gpu: bool) -> bool {
        match self {
            Self::Op | Self::Module | Self::Decode | Self::Translation | Self::Models => !on_gpu,
            Self::Blockwise => true,
            Self::Gpu => on_gpu,
        }
    }

    /// Those that were asked for, or all that are for the device, unless one is not.
    pub fn chosen(asked: &[Self], device: &str, on_gpu: bool) -> Result<Vec<Self>, String> {
        if asked.is_empty() {
            let all = Self::value_variants().iter().copied();
            return Ok(all.filter(|suite| suite.is_for(on_gpu)).collect());
        }
        let Some(&other) = asked.iter().find(|suite| !suite.is_for(on_gpu)) else {
            return Ok(asked.to_vec());
        };
        let (kind, remedy) = match on_gpu {
            true => ("processor", "set BURN_DEVICE=flex"),
            false => (
                "GPU",
                "build with `--features wgpu`, and leave BURN_DEVICE unset or say wgpu",
            ),
        };
        let suite = name(other);
        Err(format!(
            "the suite `{suite}` is for a {kind}, and Burn's device is {device}: {remedy}"
        ))
    }
}

#[cfg(test)]
mod tests;
