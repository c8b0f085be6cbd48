//! Measures burn-attn against its peers, side by side in one run.
//!
//! ```sh
//! cargo run --release -p burn-attn-bench -- op module decode translation models --json bench.json
//! cargo run --release -p burn-attn-bench -- op --quick --filter "causal 1024"
//! cargo test -p burn-attn-bench --no-default-features
//! ```
//!
//! The last line tests the bench's own arithmetic. Without feature `contestants` neither Burn nor candle is built, and nothing
//! but the tests is of use.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `suites/` | what is measured against whom |
//! | `case.rs`, `work.rs` | the words for it, as data |
//! | `contest.rs` | one case: everybody in turns, medians, ratios |
//! | `process.rs`, `protocol.rs` | child processes and what is said between them |
//! | `contestant.rs`, `subjects/` | the child's side, and the works in Rust |
//! | `checkpoints.py` | the models of the suite `models` |
//! | `peers.py` | the child's side and the works in PyTorch |
//! | `generator.rs`, `digest.rs` | the same inputs everywhere, and results that can be compared |
//! | `memory.rs` | peak memory |
//! | `report.rs`, `cli.rs` | tables and JSON, the command line |

#![cfg_attr(
    not(feature = "contestants"),
    allow(dead_code, reason = "the contestants use it")
)]

mod case;
mod cli;
mod contest;
#[cfg(feature = "contestants")]
mod contestant;
mod digest;
mod generator;
mod memory;
mod process;
mod protocol;
mod report;
#[cfg(feature = "contestants")]
mod subjects;
mod suites;
mod work;

use std::error::Error;
use std::fs;
use std::process::ExitCode;
use std::thread;

use clap::{Parser, ValueEnum};

use cli::{Arguments, Suite};
use contest::Patience;
use process::Stage;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match arguments.contestant {
        true => serve(),
        false => measure(&arguments),
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

/// Is a contestant until the parent ends it.
#[cfg(feature = "contestants")]
fn serve() -> Result<bool, Box<dyn Error>> {
    contestant::serve()?;
    Ok(true)
}

#[cfg(not(feature = "contestants"))]
fn serve() -> Result<bool, Box<dyn Error>> {
    Err("the bench was built without feature `contestants`".into())
}

/// Runs the suites; false if a contestant failed.
fn measure(arguments: &Arguments) -> Result<bool, Box<dyn Error>> {
    let threads = match arguments.threads {
        Some(threads) => threads,
        None => thread::available_parallelism()?.get(),
    };
    let patience = match arguments.quick {
        true => Patience::QUICK,
        false => Patience::FULL,
    };
    let (mut stage, pytorch) = Stage::new(threads);
    println!(
        "burn-attn {} · burn 0.22.1 · candle-nn 0.11 · {pytorch} · {threads} threads",
        env!("CARGO_PKG_VERSION")
    );
    let mut rows = Vec::new();
    let mut complete = true;
    let suites = match arguments.suites.as_slice() {
        [] => Suite::value_variants(),
        suites => suites,
    };
    for &suite in suites {
        let name = suites::name(suite);
        let mut cases = suites::cases(suite);
        cases.retain(|case| {
            (case.quick || !arguments.quick)
                && format!("{name} {}", case.name).contains(&arguments.filter)
        });
        if cases.is_empty() {
            continue;
        }
        if suite == Suite::Models
            && let Err(why) = stage.write_checkpoints(suites::models::FOLDER)
        {
            println!("\n{name}: {why}");
            complete = false;
            continue;
        }
        report::print_header(name);
        for case in cases {
            for (peer, row) in contest::run(name, &case, &mut stage, patience) {
                match row {
                    Ok(row) => {
                        report::print_row(&row);
                        rows.push(row);
                    }
                    Err(why) => {
                        report::print_missing(&case.name, &peer, &why);
                        complete = false;
                    }
                }
            }
        }
    }
    if let Some(path) = &arguments.json {
        fs::write(path, serde_json::to_string_pretty(&rows)?)
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    Ok(complete)
}
