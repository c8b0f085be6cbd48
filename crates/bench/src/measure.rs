//! A run: the cases of the suites, one after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::error::Error;
use std::fs;
use std::num::NonZero;
use std::path::Path;
use std::thread;

use burn::tensor::Device;

use crate::case::{Case, Library};
use crate::cli::{Arguments, Suite};
use crate::contest::{self, Patience};
use crate::machine::{self, Machine, Versions};
use crate::process::{PYTHON, Stage};
use crate::report::{self, Table};
use crate::run::{Missing, Run};
use crate::subjects::{self, on_gpu};
use crate::suites;
use crate::text::{self, name, quoted};
use crate::work::Work;

/// Runs the suites; false if a contestant failed.
pub fn run(arguments: &Arguments) -> Result<bool, Box<dyn Error>> {
    let processors = thread::available_parallelism()?.get();
    let threads = arguments.threads.map_or(processors, NonZero::get);
    let suites = Suite::chosen(&arguments.suites, &device(), on_gpu())?;
    let nothing_of = |&suite: &Suite| cases(suite, arguments).is_empty();
    if suites.iter().all(nothing_of) {
        let filter = &arguments.filter;
        let run = match arguments.quick {
            true => " in a quick run",
            false => "",
        };
        let none = "none of the cases of these suites";
        return Err(format!("{none}{run} has \"{filter}\" in its name").into());
    }
    let mut stage = Stage::new(threads);
    if let Err(why) = &stage.pytorch {
        println!("PyTorch is not measured: {why} ({PYTHON} names an interpreter that has it)");
    }
    let mut run = Run {
        machine: Machine::here(processors, subjects::instructions()),
        versions: Versions::new(stage.pytorch.clone().ok()),
        date: machine::now(),
        command: command(),
        quick: arguments.quick,
        threads,
        device: device(),
        fma_peak: None,
        matmul_peaks: BTreeMap::new(),
        rows: Vec::new(),
        missing: Vec::new(),
    };
    report::print_run(&run);
    let mut complete = true;
    for suite in suites {
        let cases = cases(suite, arguments);
        if cases.is_empty() {
            continue;
        }
        complete &= measure_suite(suite, cases, &mut stage, &mut run);
        run.date = machine::now();
        if let Some(path) = &arguments.json {
            write(&run, path)?;
        }
    }
    Ok(complete)
}

/// Burn's default device, such as `Flex(Cpu)`, and the name of its card, if it is not the processor.
fn device() -> String {
    let device = format!("{:?}", Device::default());
    let name = device.strip_prefix("Device<");
    let name = name.and_then(|name| name.strip_suffix('>'));
    let name = name.unwrap_or(&device);
    #[cfg(feature = "wgpu")]
    if let Some(card) = Device::default().identity() {
        return format!("{name}, {}", card.name);
    }
    name.into()
}

/// The cases of a suite that were asked for.
fn cases(suite: Suite, arguments: &Arguments) -> Vec<Case> {
    let name = name(suite);
    let mut cases = suites::cases(suite, on_gpu());
    cases.retain(|case| {
        (case.quick || !arguments.quick)
            && format!("{name} {}", case.name).contains(&arguments.filter)
    });
    cases
}

/// False if a contestant failed.
fn measure_suite(suite: Suite, cases: Vec<Case>, stage: &mut Stage, run: &mut Run) -> bool {
    let name = &name(suite);
    let table = &Table::new(&cases);
    if suite == Suite::Models {
        let lacks = stage.lacks_transformers().map(String::from);
        let complete = lacks.is_some();
        let failed = || stage.write_checkpoints(&suites::models::folder()).err();
        if let Some(why) = lacks.or_else(failed) {
            println!("\n{name}");
            missing(run, table, name, "all", "pytorch", why);
            return complete;
        }
    }
    let mut complete = match on_gpu() {
        true => matmul_peaks(name, &cases, table, stage, run),
        false => fma_peak(stage, run),
    };
    table.print_header(name, &peak(run));
    let patience = match run.quick {
        true => Patience::QUICK,
        false => Patience::FULL,
    };
    for mut case in cases {
        // Where there is no PyTorch, no card for it, or no such type, no contestant has failed.
        let ours_lacks = subjects::lacks(Library::Ours, case.ours.precision());
        case.peers.retain(|peer| {
            let lacks = ours_lacks.clone();
            let lacks = lacks.or_else(|| stage.lacks(peer.library).map(String::from));
            let lacks = lacks.or_else(|| subjects::lacks(peer.library, peer.work.precision()));
            match lacks {
                Some(why) => {
                    missing(run, table, name, &case.name, &peer.name, why);
                    false
                }
                None => true,
            }
        });
        if case.peers.is_empty() {
            continue;
        }
        let rows = contest::run(name, &case, stage, patience);
        for (peer, row) in case.peers.iter().zip(rows) {
            match row {
                Ok(row) => {
                    table.print_row(&row);
                    run.rows.push(row);
                }
                Err(why) => {
                    missing(run, table, name, &case.name, &peer.name, why);
                    complete = false;
                }
            }
        }
    }
    complete
}

/// Measures the peak of the processor before every suite: the machine may be busy at one of these times, and the fastest counts. False if
/// that failed.
fn fma_peak(stage: &mut Stage, run: &mut Run) -> bool {
    match contest::peak(stage, Library::Ours, &Work::Fma(run.threads)) {
        Ok(peak) => {
            run.fma_peak = Some(run.fma_peak.map_or(peak, |before| before.max(peak)));
            true
        }
        Err(why) => {
            println!("the peak of the machine is not known: {why}");
            false
        }
    }
}

/// Measures what the device does with the matrices of each type that the cases have, before every suite, as [`fma_peak`]. False if a
/// contestant failed.
fn matmul_peaks(
    suite: &str,
    cases: &[Case],
    table: &Table,
    stage: &mut Stage,
    run: &mut Run,
) -> bool {
    let mut complete = true;
    let precisions: BTreeSet<_> = cases.iter().map(|case| case.ours.precision()).collect();
    for precision in precisions {
        let lacks = subjects::lacks(Library::Burn, precision);
        let has_type = lacks.is_none();
        match lacks.map_or_else(|| contest::matmul_peak(stage, precision), Err) {
            Ok(peak) => {
                let fastest = run.matmul_peaks.entry(precision).or_insert(peak);
                *fastest = fastest.max(peak);
            }
            Err(why) => {
                let case = format!("products of matrices in {}", name(precision));
                missing(run, table, suite, &case, "burn", why);
                complete &= !has_type;
            }
        }
    }
    complete
}

/// What the rates are shares of.
fn peak(run: &Run) -> String {
    match (on_gpu(), run.fma_peak) {
        (true, _) => {
            let peaks = text::matmul_peaks(&run.matmul_peaks);
            format!("products of matrices: {peaks}")
        }
        (false, Some(peak)) => format!("multiply-adds: {peak:.0} GFLOP/s"),
        (false, None) => "multiply-adds: not known".into(),
    }
}

/// A peer without numbers.
fn missing(run: &mut Run, table: &Table, suite: &str, case: &str, peer: &str, why: String) {
    let missing = Missing {
        suite: suite.into(),
        case: case.into(),
        peer: peer.into(),
        why,
    };
    table.print_missing(&missing);
    run.missing.push(missing);
}

fn write(run: &Run, path: &Path) -> Result<(), String> {
    let json = serde_json::to_string_pretty(run).expect("a run is plain data");
    fs::write(path, json + "\n")
        .map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// The command that repeats this run.
fn command() -> String {
    let set = |name| env::var(name).map(|value| format!("{name}={} ", quoted(&value)));
    let variables = ["BURN_DEVICE", "BURN_ATTN_MATRIX_UNITS"].map(set);
    let variables: String = variables.into_iter().flatten().collect();
    let features = match (cfg!(feature = "vulkan"), cfg!(feature = "wgpu")) {
        (true, _) => " --features vulkan",
        (_, true) => " --features wgpu",
        _ => "",
    };
    let arguments = env::args().skip(1).map(|argument| quoted(&argument));
    let arguments = arguments.collect::<Vec<_>>().join(" ");
    format!("{variables}cargo run --release -p burn-attn-bench{features} -- {arguments}")
}
