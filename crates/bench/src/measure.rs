//! A run: the cases of the suites, one after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::error::Error;
use std::fs;
use std::num::NonZero;
use std::path::Path;
use std::thread;

use burn::tensor::Device;
use clap::ValueEnum;

use crate::case::{Case, Library};
use crate::cli::{Arguments, Suite};
use crate::contest::{self, Patience};
use crate::machine::{self, Machine, Versions};
use crate::process::{PYTHON, Stage};
use crate::report;
use crate::run::{Missing, Run};
use crate::subjects::{self, on_gpu};
use crate::suites;
use crate::text::{self, name};
use crate::work::Work;

/// Runs the suites; false if a contestant failed.
pub fn run(arguments: &Arguments) -> Result<bool, Box<dyn Error>> {
    let processors = thread::available_parallelism()?.get();
    let threads = arguments.threads.map_or(processors, NonZero::get);
    let suites = suites(&arguments.suites)?;
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
        date: machine::today(),
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
        run.date = machine::today();
        if let Some(path) = &arguments.json {
            write(&run, path)?;
        }
    }
    Ok(complete)
}

/// The suites that were asked for, or all that are for the device.
fn suites(asked: &[Suite]) -> Result<Vec<Suite>, String> {
    let fits = |suite: &Suite| *suite != Suite::Gpu || on_gpu();
    let all = Suite::value_variants().iter().copied();
    match asked {
        [] => Ok(all.filter(fits).collect()),
        _ if asked.iter().all(fits) => Ok(asked.to_vec()),
        _ => Err(format!(
            "the suite `gpu` is for a GPU, and Burn's device is {}: build with `--features wgpu`, and leave BURN_DEVICE unset or say wgpu",
            device()
        )),
    }
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
    if suite == Suite::Models {
        let lacks = stage.lacks_transformers().map(String::from);
        let complete = lacks.is_some();
        let failed = || stage.write_checkpoints(&suites::models::folder()).err();
        if let Some(why) = lacks.or_else(failed) {
            println!("\n{name}");
            missing(run, name, "all", "pytorch", why);
            return complete;
        }
    }
    let peak = match suite {
        Suite::Gpu => matmul_peaks(&cases, stage, run),
        _ => fma_peak(stage, run),
    };
    report::print_header(name, &peak);
    let patience = match run.quick {
        true => Patience::QUICK,
        false => Patience::FULL,
    };
    let mut complete = true;
    for mut case in cases {
        // Where there is no PyTorch, no card for it, or no such type, no contestant has failed.
        case.peers.retain(|peer| {
            let lacks = stage.lacks(peer.library).map(Into::into);
            match lacks.or_else(|| subjects::lacks(peer.library, &peer.work)) {
                Some(why) => {
                    missing(run, name, &case.name, &peer.name, why);
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
                    report::print_row(&row);
                    run.rows.push(row);
                }
                Err(why) => {
                    missing(run, name, &case.name, &peer.name, why);
                    complete = false;
                }
            }
        }
    }
    complete
}

/// Measures the peak of the processor before every suite: the machine may be busy at one of these times, and the fastest counts.
fn fma_peak(stage: &mut Stage, run: &mut Run) -> String {
    match contest::peak(stage, Library::Ours, &Work::Fma(run.threads)) {
        Ok(peak) => run.fma_peak = Some(run.fma_peak.map_or(peak, |before| before.max(peak))),
        Err(why) => println!("the peak of the machine is not known: {why}"),
    }
    match run.fma_peak {
        Some(peak) => format!("multiply-adds: {peak:.0} GFLOP/s"),
        None => "multiply-adds: not known".into(),
    }
}

/// Measures what the device does with the matrices of each type that the cases have.
fn matmul_peaks(cases: &[Case], stage: &mut Stage, run: &mut Run) -> String {
    let precisions: BTreeSet<_> = cases.iter().map(|case| case.ours.precision()).collect();
    for precision in precisions {
        match contest::matmul_peak(stage, precision) {
            Ok(peak) => {
                run.matmul_peaks.insert(precision, peak);
            }
            Err(why) => {
                let case = format!("products of matrices in {}", name(precision));
                missing(run, &name(Suite::Gpu), &case, "burn", why);
            }
        }
    }
    let peaks = text::matmul_peaks(&run.matmul_peaks);
    format!("products of matrices: {peaks}")
}

/// A peer without numbers.
fn missing(run: &mut Run, suite: &str, case: &str, peer: &str, why: String) {
    report::print_missing(case, peer, &why);
    run.missing.push(Missing {
        suite: suite.into(),
        case: case.into(),
        peer: peer.into(),
        why,
    });
}

fn write(run: &Run, path: &Path) -> Result<(), String> {
    let json = serde_json::to_string_pretty(run).expect("a run is plain data");
    fs::write(path, json + "\n")
        .map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// The command that repeats this run.
fn command() -> String {
    let quoted = |argument: String| match argument.contains(' ') {
        true => format!("\"{argument}\""),
        false => argument,
    };
    let features = match (cfg!(feature = "vulkan"), cfg!(feature = "wgpu")) {
        (true, _) => " --features vulkan",
        (_, true) => " --features wgpu",
        _ => "",
    };
    let arguments: Vec<_> = env::args().skip(1).map(quoted).collect();
    let arguments = arguments.join(" ");
    format!("cargo run --release -p burn-attn-bench{features} -- {arguments}")
}
