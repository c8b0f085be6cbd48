//! The examples run to their ends: the translator writes its files, the tiny one learns, attention by hand is that of the module.

use std::fs;

use crate::command::{at, cargo, cargo_text, root, words};

/// With `--bin`, not `-p`, the features are those of all default members, and the profile is that of the tests: both examples
/// share the tests' build of Burn.
const RUN: [&str; 3] = ["run", "--quiet", "--bin"];
/// Burn's default device would be a GPU where one is built in.
pub const ON_THE_CPU: [(&str, &str); 1] = [("BURN_DEVICE", "flex")];

/// Trains for one epoch, then translates, evaluates and explains with what came out. How well it does is not looked at.
pub fn translation(features: &[&str]) -> Result<(), String> {
    let out = root().join("target/translation-smoke");
    if out.exists() {
        fs::remove_dir_all(&out).map_err(at(&out))?;
    }
    let out = out.display().to_string();
    let page = format!("{out}/attention.html");
    let report = format!("{out}/report.json");
    let translation = |arguments: &[&str]| {
        let out = ["--out", &out];
        let all = [
            &RUN[..],
            &["translation"],
            features,
            &["--"],
            arguments,
            &out,
        ];
        cargo(&all.concat(), &ON_THE_CPU)
    };
    let train = words("train --epochs 1 --d-model 32 --report");
    translation(&[&train[..], &[&report]].concat())?;
    translation(&["translate", "The girl eats an apple."])?;
    translation(&["evaluate"])?;
    translation(&["explain", "The girl eats an apple.", "--html", &page])?;
    for file in [&page, &report] {
        let size = fs::metadata(file)
            .map_err(|error| format!("{file}: {error}"))?
            .len();
        if size == 0 {
            return Err(format!("{file} is empty"));
        }
    }
    Ok(())
}

/// Computes self-attention step by step, and compares it with the module.
pub fn by_hand(features: &[&str]) -> Result<(), String> {
    let run = ["run", "--quiet", "--example", "by_hand"];
    cargo(&[&run[..], features].concat(), &ON_THE_CPU)
}

/// Trains the smallest model for some steps, and sees it learn.
pub fn tiny(features: &[&str]) -> Result<(), String> {
    let steps = ["--", "250"];
    let run = [&RUN[..], &["tiny"], features, &steps].concat();
    let text = cargo_text(&run, &ON_THE_CPU)?;
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
