//! What a change must pass.

use std::fs;

use crate::command::{cargo, root, tool};
use crate::{features, kernels, lengths, page};

/// Checks that are too long to be always run.
#[derive(Default)]
pub struct Options {
    /// Test on wgpu.
    pub wgpu: bool,
    /// Type-check every other backend.
    pub types: bool,
    /// Type-check the CPU kernels for wasm32.
    pub wasm: bool,
    /// Test the CPU kernels under the address sanitizer.
    pub asan: bool,
    /// Run the unit tests of the CPU kernels in Miri.
    pub miri: bool,
    /// Run the models of the CPU kernels' threads in loom.
    pub loom: bool,
}

/// Runs every check until one fails.
pub fn run(options: &Options) -> Result<(), String> {
    lengths::short_files()?;
    tool("python3", &["-B", "tests/golden/check_golden.py"])?;
    page::check()?;
    cargo(&["fmt", "--all", "--check"], &[])?;
    let deny = ["--", "-D", "warnings"];
    cargo(
        &[&["clippy", "--workspace", "--all-targets"], &deny[..]].concat(),
        &[],
    )?;
    let without_std = [
        "clippy",
        "-p",
        "burn-attn-kernels-cpu",
        "--no-default-features",
    ];
    cargo(&[&without_std, &deny[..]].concat(), &[])?;
    features::small_sets()?;
    cargo(
        &["doc", "--workspace", "--no-deps"],
        &[("RUSTDOCFLAGS", "-D warnings")],
    )?;
    translation_smoke()?;
    cargo(&["run", "--release", "--quiet", "--bin", "quickstart"], &[])?;
    if options.types {
        features::other_backends()?;
    }
    if options.wasm {
        kernels::wasm()?;
    }
    if options.asan {
        kernels::asan()?;
    }
    if options.miri {
        kernels::miri()?;
    }
    if options.loom {
        kernels::loom()?;
    }
    if options.wgpu {
        // A target directory of its own: another set of features would rebuild the default one.
        let test = [
            "test",
            "-p",
            "burn-attn-tests",
            "--features",
            "wgpu",
            "--target-dir",
            "target/wgpu",
        ];
        cargo(&test, &[])?;
    }
    cargo(&["test"], &[])
}

/// Trains for a few steps, then uses every subcommand on what came out.
fn translation_smoke() -> Result<(), String> {
    let out = root().join("target/translation-smoke");
    if out.exists() {
        fs::remove_dir_all(&out).map_err(|error| format!("{}: {error}", out.display()))?;
    }
    let out = out.display().to_string();
    let page = format!("{out}/attention.html");
    let report = format!("{out}/report.json");
    // `--bin` rather than `-p`: the features of all default members, so that quickstart finds Burn built.
    let translation = |arguments: &[&str]| {
        let start = ["run", "--release", "--quiet", "--bin", "translation", "--"];
        cargo(&[&start, arguments, &["--out", &out]].concat(), &[])
    };
    translation(&[
        "train",
        "--epochs",
        "1",
        "--d-model",
        "32",
        "--report",
        &report,
    ])?;
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
