//! What a change must pass.

use crate::command::{cargo, cargo_tests, tool, words};
use crate::examples::ON_THE_CPU;
use crate::{
    duplicates, examples, features, imports, kernels, lengths, newcomer, packages, page,
    reading_list,
};

/// What [`run`] can be asked for in addition.
pub const OPTIONS: [&str; 11] = [
    "--wgpu",
    "--types",
    "--remote",
    "--wasm",
    "--asan",
    "--miri",
    "--loom",
    "--long",
    "--package",
    "--newcomer",
    "--times",
];

/// Runs every check until one fails, and those that are too long to be always run if `options` name them.
pub fn run(options: &[String]) -> Result<(), String> {
    let asked = |option: &str| options.iter().any(|asked| asked == option);
    lengths::short_files()?;
    duplicates::no_long_ones()?;
    imports::no_loops()?;
    reading_list::check()?;
    tool("python3", &["-B", "tests/golden/check_golden.py"])?;
    page::check()?;
    packages::dependencies()?;
    cargo(&["fmt", "--all", "--check"], &[])?;
    let clippy = |of: &str| cargo(&words(&format!("clippy {of} -- -D warnings")), &[]);
    clippy("--workspace --all-targets")?;
    clippy("-p burn-attn-kernels-cpu --no-default-features")?;
    features::small_sets()?;
    let documentation = [("RUSTDOCFLAGS", "-D warnings")];
    cargo(&["doc", "--workspace", "--no-deps"], &documentation)?;
    // One build for the examples and the tests: every set of features is another Burn, of many minutes.
    let features = words(if asked("--wgpu") {
        "--features wgpu"
    } else {
        ""
    });
    examples::by_hand(&features)?;
    examples::translation(&features)?;
    examples::tiny(&features)?;
    cargo_tests(&words("test -p burn-attn-bench --no-default-features"), &[])?;
    if asked("--types") {
        features::other_backends()?;
    }
    if asked("--remote") {
        let test = "test -p burn-attn-tests --features remote --test op a_remote_server_agrees_with_the_oracle";
        cargo_tests(&words(test), &ON_THE_CPU)?;
    }
    for (option, check) in [
        ("--wasm", kernels::wasm as fn() -> Result<(), String>),
        ("--asan", kernels::asan),
        ("--miri", kernels::miri),
        ("--loom", kernels::loom),
        ("--long", million_calls),
        ("--newcomer", newcomer::follow_readme),
        ("--package", packages::put_together),
    ] {
        if asked(option) {
            check()?;
        }
    }
    // The GPU kernels are not among the default members: their tests need an adapter.
    let members = match asked("--wgpu") {
        true => "--workspace --exclude burn-attn-bench",
        false => "",
    };
    let tests = [vec!["test"], words(members), features].concat();
    cargo(&tests, &ON_THE_CPU)
}

/// Compares a million random calls with the oracle.
fn million_calls() -> Result<(), String> {
    let test = "test --release --test op random_calls_agree_with_the_oracle -- --nocapture";
    let cases = ("BURN_ATTN_CASES", "1000000");
    cargo_tests(&words(test), &[ON_THE_CPU[0], cases])
}
