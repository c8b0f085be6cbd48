//! What a change must pass.

use crate::command::{cargo, cargo_tests, tool};
use crate::{
    examples, features, imports, kernels, lengths, newcomer, packages, page, reading_list,
};

/// Checks that are too long to be always run.
#[derive(Default)]
pub struct Options {
    /// Test on wgpu as well.
    pub wgpu: bool,
    /// Type-check every other backend.
    pub types: bool,
    /// Test the op on a remote server.
    pub remote: bool,
    /// Type-check the CPU kernels for wasm32.
    pub wasm: bool,
    /// Test the CPU kernels under the address sanitizer.
    pub asan: bool,
    /// Run the unit tests of the CPU kernels in Miri.
    pub miri: bool,
    /// Run the models of the CPU kernels' threads in loom.
    pub loom: bool,
    /// Print what every step took.
    pub times: bool,
    /// Compare a million random calls with the oracle.
    pub long: bool,
    /// Put together the packages that would be published.
    pub package: bool,
    /// Use the crate as the README says, from a project of its own.
    pub newcomer: bool,
}

/// Runs every check until one fails.
pub fn run(options: &Options) -> Result<(), String> {
    lengths::short_files()?;
    imports::no_loops()?;
    reading_list::check()?;
    tool("python3", &["-B", "tests/golden/check_golden.py"])?;
    page::check()?;
    packages::dependencies()?;
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
    // One build for the examples and the tests: every set of features is another Burn, of many minutes.
    let features: &[&str] = if options.wgpu {
        &["--features", "wgpu"]
    } else {
        &[]
    };
    examples::by_hand(features)?;
    examples::translation(features)?;
    examples::tiny(features)?;
    let bench = ["test", "-p", "burn-attn-bench", "--no-default-features"];
    cargo_tests(&bench, &[])?;
    if options.types {
        features::other_backends()?;
    }
    if options.remote {
        let test = "a_remote_server_agrees_with_the_oracle";
        let arguments = [
            "test",
            "-p",
            "burn-attn-tests",
            "--features",
            "remote",
            "--test",
            "op",
            test,
        ];
        cargo_tests(&arguments, &examples::ON_THE_CPU)?;
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
    if options.long {
        let test = "random_calls_agree_with_the_oracle";
        let arguments = [
            "test",
            "--release",
            "--test",
            "op",
            test,
            "--",
            "--nocapture",
        ];
        let cases = ("BURN_ATTN_CASES", "1000000");
        cargo_tests(&arguments, &[&examples::ON_THE_CPU[..], &[cases]].concat())?;
    }
    if options.newcomer {
        newcomer::follow_readme()?;
    }
    if options.package {
        packages::put_together()?;
    }
    // The GPU kernels are not among the default members: their tests need an adapter.
    let members: &[&str] = if options.wgpu {
        &["--workspace", "--exclude", "burn-attn-bench"]
    } else {
        &[]
    };
    let tests = [&["test"], members, features].concat();
    cargo(&tests, &examples::ON_THE_CPU)
}
