//! Checks of the CPU kernels alone, which need another compiler, target or flag.

use std::{path::Path, process::Command};

use crate::command::{cargo, exists, program, run, run_tests, succeeds, words};

/// Type-checks them for wasm32, without `std` and with it.
pub fn wasm() -> Result<(), String> {
    const TARGET: &str = "wasm32-unknown-unknown";
    // Where Debian's packages put their compiler, which needs no server of rustup's.
    const DEBIAN: &str = "/usr/bin/rustc";
    let (flags, environment) = if has_component("rustc", TARGET) {
        ("", &[][..])
    } else if has_component(DEBIAN, "src/rust/library") {
        let environment = &[("RUSTC", DEBIAN), ("RUSTC_BOOTSTRAP", "1")];
        ("-Z build-std=std,panic_abort", &environment[..])
    } else {
        return Err(format!(
            "--wasm needs `rustup target add {TARGET}`, or {DEBIAN} with its sources (Debian: rustc-web, rust-web-src)"
        ));
    };
    for features in ["", "--features std"] {
        let check = format!(
            "check -p burn-attn-kernels-cpu --target {TARGET} --target-dir target/wasm --no-default-features {features} {flags}"
        );
        run(cargo(&check).envs(environment.iter().copied()))?;
    }
    Ok(())
}

/// Whether a compiler has a folder in its `lib/rustlib`: a target, or the sources of the standard library.
fn has_component(rustc: &str, folder: &str) -> bool {
    Command::new(rustc)
        .args(["--print", "sysroot"])
        .output()
        .is_ok_and(|output| {
            let sysroot = String::from_utf8_lossy(&output.stdout);
            let rustlib = Path::new(sysroot.trim()).join("lib/rustlib");
            output.status.success() && rustlib.join(folder).is_dir()
        })
}

/// Tests them under the address sanitizer, which looks for leaks as well.
pub fn asan() -> Result<(), String> {
    const TARGET: &str = "x86_64-unknown-linux-gnu";
    // It names the functions of a leak, without which none is suppressed.
    const SYMBOLIZER: &str = "llvm-symbolizer";
    if !exists(SYMBOLIZER) {
        return Err(format!("--asan needs {SYMBOLIZER} (Debian: llvm)"));
    }
    let test = format!(
        "test --locked -p burn-attn-kernels-cpu --target {TARGET} --target-dir target/asan --lib --tests"
    );
    let environment = [
        ("RUSTFLAGS", "-Zsanitizer=address"),
        // Cargo runs the tests in the folder of their crate, where the file lies.
        ("LSAN_OPTIONS", "suppressions=leaks.supp"),
    ];
    run_tests(nightly("--asan", &test)?.envs(environment))
}

/// Runs their unit tests in Miri.
pub fn miri() -> Result<(), String> {
    let test = "miri test --locked -p burn-attn-kernels-cpu --target-dir target/miri --lib";
    run_tests(&mut nightly("--miri", test)?)
}

/// Cargo of the nightly compiler, or what `option` needs.
fn nightly(option: &str, line: &str) -> Result<Command, String> {
    let words = words(line);
    let cargo = || {
        let mut rustup = program("rustup");
        rustup.args(["run", "nightly", "cargo", words[0]]);
        rustup
    };
    // `cargo miri --help` answers only where Miri is there.
    if !succeeds(cargo().arg("--help")) {
        return Err(format!(
            "{option} needs `rustup toolchain install nightly --component miri --component rust-src`"
        ));
    }
    let mut cargo = cargo();
    cargo.args(&words[1..]);
    Ok(cargo)
}

/// Runs every interleaving of their threads' model in loom.
pub fn loom() -> Result<(), String> {
    let test = "test --release -p burn-attn-kernels-cpu --target-dir target/loom --lib gate::tests";
    run_tests(cargo(test).env("RUSTFLAGS", "--cfg loom"))
}
