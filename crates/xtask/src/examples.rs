//! The examples run to their ends: the translator writes its files, the tiny one learns, attention by hand is that of the module.

use std::{fs, process::Command};

use crate::command::{at, cargo, root, run, text};

/// Cargo, whose programs compute on the CPU: Burn's default device would be a GPU where one is built in.
pub fn on_the_cpu(line: &str) -> Command {
    let mut command = cargo(line);
    command.env("BURN_DEVICE", "flex");
    command
}

/// A program. With `--bin`, not `-p`, the features are those of all default members, and the profile is that of the tests: both
/// examples share the tests' build of Burn.
fn example(name: &str, features: &str) -> Command {
    on_the_cpu(&format!("run --quiet --bin {name} {features} --"))
}

/// Trains for one epoch, then translates, evaluates and explains with what came out. How well it does is not looked at.
pub fn translation(features: &str) -> Result<(), String> {
    let out = root().join("target/translation-smoke");
    if out.exists() {
        fs::remove_dir_all(&out).map_err(at(&out))?;
    }
    let out = out.display().to_string();
    let page = format!("{out}/attention.html");
    let report = format!("{out}/report.json");
    let sentence = "The girl eats an apple.";
    for arguments in [
        &["train", "--epochs=1", "--d-model=32", "--report", &report][..],
        &["translate", sentence],
        &["evaluate"],
        &["explain", sentence, "--html", &page],
    ] {
        let mut translation = example("translation", features);
        run(translation.args(arguments).args(["--out", &out]))?;
    }
    for file in [&page, &report] {
        let metadata = fs::metadata(file).map_err(|error| format!("{file}: {error}"))?;
        if metadata.len() == 0 {
            return Err(format!("{file} is empty"));
        }
    }
    Ok(())
}

/// Computes self-attention step by step, and compares it with the module.
pub fn by_hand(features: &str) -> Result<(), String> {
    let by_hand = format!("run --quiet --example by_hand {features}");
    run(&mut on_the_cpu(&by_hand))
}

/// Trains the smallest model for some steps, and sees it learn.
pub fn tiny(features: &str) -> Result<(), String> {
    let text = text(example("tiny", features).arg("250"))?;
    eprint!("{text}");
    falling(&text).map_err(|losses| format!("the losses of tiny do not halve: {losses:?}"))
}

/// The losses in lines that end with `loss NUMBER`, as an error unless the last is less than half of the first.
pub fn falling(text: &str) -> Result<(), Vec<f64>> {
    let losses = text.lines();
    let losses = losses.filter_map(|line| line.split_once("loss ")?.1.trim().parse().ok());
    let losses: Vec<f64> = losses.collect();
    match (losses.first(), losses.last()) {
        (Some(first), Some(last)) if *last < first / 2.0 => Ok(()),
        _ => Err(losses),
    }
}

#[cfg(test)]
mod tests;
