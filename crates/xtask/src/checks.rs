//! What a change must pass.

use crate::command::{cargo, run_tests, tool};
use crate::examples::on_the_cpu;
use crate::{
    book, command, cuda, drivers, duplicates, examples, explorer, features, imports, kernels,
    lengths, newcomer, packages, page, reading_list,
};

type Check = fn() -> Result<(), String>;

/// The checks that are too long to be always run, and the options that ask for them.
const ASKED_FOR: [(&str, Check); 13] = [
    ("--types", features::other_backends),
    ("--remote", features::remote),
    ("--wasm", kernels::wasm),
    ("--asan", kernels::asan),
    ("--miri", kernels::miri),
    ("--loom", kernels::loom),
    ("--registers", cuda::registers),
    ("--emulate", cuda::emulate),
    ("--drivers", drivers::compile),
    ("--long", long),
    ("--newcomer", newcomer::on_flex),
    ("--explorer", explorer::build),
    ("--package", packages::put_together),
];

/// Whether [`run`] or its caller knows this option.
pub fn is_option(option: &str) -> bool {
    let mut known = ASKED_FOR.iter().map(|(option, _)| *option);
    known.any(|known| known == option) || ["--wgpu", "--vulkan", "--times"].contains(&option)
}

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
    packages::files_are_whole()?;
    command::run(&mut cargo("fmt --all --check"))?;
    let clippy = |of: &str| command::run(&mut cargo(&format!("clippy {of} -- -D warnings")));
    clippy("--workspace --all-targets")?;
    clippy("-p burn-attn-kernels-cpu --no-default-features")?;
    features::small_sets()?;
    let mut documentation = cargo("doc --workspace --no-deps");
    command::run(documentation.env("RUSTDOCFLAGS", "-D warnings"))?;
    // One build for the examples and the tests: every set of features is another Burn, of many minutes. The GPU kernels are not among
    // the default members: their tests need an adapter.
    let everything = "--workspace --exclude burn-attn-bench";
    let (features, members) = match (asked("--vulkan"), asked("--wgpu")) {
        (true, _) => ("--features wgpu,vulkan", everything),
        (false, true) => ("--features wgpu", everything),
        (false, false) => ("", ""),
    };
    examples::build(members, features)?;
    examples::by_hand()?;
    examples::translation()?;
    examples::tiny()?;
    run_tests(&mut cargo("test -p burn-attn-bench --no-default-features"))?;
    for (option, check) in ASKED_FOR {
        if asked(option) {
            check()?;
        }
    }
    explorer::check()?;
    book::check()?;
    let test = |which: &str| on_the_cpu(cargo(&format!("test {members} {features} {which}")));
    if !asked("--vulkan") {
        return command::run(&mut test(""));
    }
    // Lavapipe compiles for longer than it computes: without optimisation in 0.6 to 0.9 of the time, and for short vectors in about half, but it lists
    // matrix units only with long ones.
    let test = |which: &str| {
        let mut test = test(which);
        test.env("GALLIVM_PERF", "nopt");
        test
    };
    let mut of_matrix_units =
        test("--lib --test op -- tests::matrix in_half_precision a_call_has_enough_cubes");
    // `.ci/lavapipe` says so of its driver.
    if command::is_1("BURN_ATTN_HAS_MATRIX_UNITS") {
        // Without them these tests pass and have tested nothing.
        of_matrix_units.env("BURN_ATTN_NEEDS_MATRIX_UNITS", "1");
    }
    if asked("--long") {
        of_matrix_units.env("BURN_ATTN_LONG", "1");
    }
    run_tests(of_matrix_units.env_remove("LP_NATIVE_VECTOR_WIDTH"))?;
    for switch in ["off", "tf32"] {
        let mut chosen = test("--lib -- chosen::the_environment");
        run_tests(chosen.env("BURN_ATTN_MATRIX_UNITS", switch))?;
    }
    command::run(test("").env("LP_NATIVE_VECTOR_WIDTH", "128"))
}

/// The README's example on wgpu, the calls that suites on wgpu leave out, and a million random calls beside the oracle.
fn long() -> Result<(), String> {
    newcomer::on_wgpu()?;
    let suites =
        "test --workspace --exclude burn-attn-bench --features wgpu --test op --test modules";
    run_tests(on_the_cpu(cargo(suites)).env("BURN_ATTN_LONG", "1"))?;
    let test = "test --release --test op random_calls_agree_with_the_oracle -- --nocapture";
    run_tests(on_the_cpu(cargo(test)).env("BURN_ATTN_CASES", "1000000"))
}
