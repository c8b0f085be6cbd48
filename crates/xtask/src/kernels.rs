//! Checks of the CPU kernels alone, which need another compiler, target or flag.

use std::{path::Path, process::Command};

use crate::command::{cargo, exists, program, run, run_tests, succeeds, words};

/// The target of a browser.
pub const WASM: &str = "wasm32-unknown-unknown";

/// Cargo with the words of `line`, for [`WASM`], or what `option` needs for that.
pub fn wasm_cargo(option: &str, line: &str) -> Result<Command, String> {
    // Where Debian's packages put their compiler, which needs no server of rustup's.
    const DEBIAN: &str = "/usr/bin/rustc";
    let mut cargo = cargo(&format!("{line} --target {WASM} --target-dir target/wasm"));
    if has_component("rustc", WASM) {
        return Ok(cargo);
    }
    if !(has_component(DEBIAN, "src/rust/library") && exists("wasm-ld")) {
        return Err(format!(
            "{option} needs `rustup target add {WASM}`, or {DEBIAN} with its sources and wasm-ld (Debian: rustc-web, rust-web-src, \
             libstd-rust-web-dev, lld)"
        ));
    }
    cargo.args(["-Z", "build-std=std,panic_abort"]);
    cargo.envs([
        ("RUSTC", DEBIAN),
        ("RUSTC_BOOTSTRAP", "1"),
        ("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", "wasm-ld"),
    ]);
    Ok(cargo)
}

/// Type-checks them for a browser, without `std` and with it.
pub fn wasm() -> Result<(), String> {
    for features in ["", "--features std"] {
        let check = format!("check -p burn-attn-kernels-cpu --no-default-features {features}");
        run(&mut wasm_cargo("--wasm", &check)?)?;
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
    // It names the functions of a leak, by which leaks are suppressed.
    const SYMBOLIZER: &str = "llvm-symbolizer";
    if !exists(SYMBOLIZER) {
        return Err(format!("--asan needs {SYMBOLIZER} (Debian: llvm)"));
    }
    let test = format!(
        "test --locked -p burn-attn-kernels-cpu --target {TARGET} --target-dir target/asan --lib --tests"
    );
    let environment = [
        ("RUSTFLAGS", "-Zsanitizer=address"),
        // Cargo runs the tests in the folder of their crate, where `leaks.supp` lies.
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
