//! The examples run to their ends: the translator writes its files, the tiny one learns, attention by hand is that of the module.

use std::{
    env::{self, consts::EXE_SUFFIX},
    fs,
    process::Command,
};

use crate::command::{at, cargo, program, root, run, text};

/// Computes on the CPU: Burn's default device would be a GPU where one is built in.
pub fn on_the_cpu(mut command: Command) -> Command {
    command.env("BURN_DEVICE", "flex");
    command
}

/// Builds all programs and tests at once. `cargo run` would build Burn again: it takes the features of fewer packages.
pub fn build(members: &str, features: &str) -> Result<(), String> {
    let targets = "--bins --examples --tests";
    run(&mut cargo(&format!("build {members} {features} {targets}")))
}

/// A program that is [built](build), by its path in the folder of the profile.
pub fn built(path: &str) -> Command {
    let target = env::var_os("CARGO_TARGET_DIR").unwrap_or("target".into());
    let path = root()
        .join(target)
        .join("debug")
        .join(format!("{path}{EXE_SUFFIX}"));
    on_the_cpu(program(path))
}

/// Trains for one epoch, then translates, evaluates and explains with what came out. How well it does is not looked at.
pub fn translation() -> Result<(), String> {
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
        let mut translation = built("translation");
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
pub fn by_hand() -> Result<(), String> {
    run(&mut built("examples/by_hand"))
}

/// Trains the smallest model for some steps, and sees it learn.
pub fn tiny() -> Result<(), String> {
    let text = text(built("tiny").arg("250"))?;
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
