//! Measures burn-attn against its peers, side by side in one run.
//!
//! ```sh
//! cargo run --release -p burn-attn-bench -- op module decode translation models blockwise --json bench.json
//! cargo run --release -p burn-attn-bench -- op --quick --filter "causal 1024"
//! cargo run --release -p burn-attn-bench --features wgpu -- gpu blockwise --json gpu.json
//! cargo run -p burn-attn-bench --no-default-features -- --report
//! cargo test -p burn-attn-bench --no-default-features
//! ```
//!
//! The fourth line writes BENCHMARKS.md and the README's table of speed from the runs in `results/`, the last one tests the bench's
//! arithmetic and that both are what these runs say. Without feature `contestants` neither Burn nor candle is built: these two commands then
//! take seconds.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `suites/` | what is measured against whom |
//! | `case.rs`, `work.rs` | the words for it, as data |
//! | `work/operations.rs` | how operations are counted |
//! | `measure.rs` | a run: all cases of all suites |
//! | `contest.rs` | one case: contestants in turns, medians, ratios |
//! | `process.rs`, `protocol.rs` | child processes and what is said between them |
//! | `contestant.rs`, `subjects/` | the child's side, and the works in Rust |
//! | `checkpoints.py` | the models of the suite `models` |
//! | `peers.py`, `contestant.py` | the works in PyTorch, and the child's side there |
//! | `generator.rs`, `digest.rs` | the same inputs everywhere, and results that can be compared |
//! | `memory.rs` | peak memory |
//! | `run.rs`, `machine.rs` | a whole run as JSON: where, with which versions, what came out |
//! | `report.rs`, `markdown.rs`, `prose/` | rows in the terminal; BENCHMARKS.md and what it says in words |
//! | `text.rs` | numbers and arguments as text |
//! | `readme.rs` | the table of speed in README.md |
//! | `cli.rs` | the command line |

#![cfg_attr(
    not(feature = "contestants"),
    allow(dead_code, reason = "a run uses it")
)]

mod case;
mod cli;
mod contest;
#[cfg(feature = "contestants")]
mod contestant;
mod digest;
mod generator;
mod machine;
mod markdown;
#[cfg(feature = "contestants")]
mod measure;
mod memory;
mod process;
mod protocol;
mod readme;
mod report;
mod run;
#[cfg(feature = "contestants")]
mod subjects;
mod suites;
mod text;
mod work;

use std::error::Error;
use std::fs;
use std::process::ExitCode;

use clap::Parser;

use cli::Arguments;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match arguments.report && !arguments.contestant {
        true => write_report(),
        false => run(&arguments),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Writes BENCHMARKS.md, and the table of speed in README.md.
fn write_report() -> Result<bool, Box<dyn Error>> {
    let runs = markdown::committed_runs()?;
    let readme = readme::with_table(&readme::committed()?, &runs)?;
    for (file, text) in [
        (markdown::FILE, markdown::report(&runs)),
        (readme::FILE, readme),
    ] {
        fs::write(file, text).map_err(|error| format!("cannot write {file}: {error}"))?;
    }
    Ok(true)
}

/// Runs the suites, false if a contestant failed; or is a contestant until the parent ends it.
#[cfg(feature = "contestants")]
fn run(arguments: &Arguments) -> Result<bool, Box<dyn Error>> {
    if arguments.contestant {
        contestant::serve()?;
        return Ok(true);
    }
    measure::run(arguments)
}

#[cfg(not(feature = "contestants"))]
fn run(_: &Arguments) -> Result<bool, Box<dyn Error>> {
    Err("the bench was built without feature `contestants`".into())
}
