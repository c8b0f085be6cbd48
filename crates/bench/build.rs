//! Tells the bench which compiler built it.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let said = Command::new(rustc).arg("--version").output();
    let version = said.map_or_else(
        |_| "unknown".into(),
        |said| String::from_utf8_lossy(&said.stdout).trim().to_string(),
    );
    println!("cargo:rustc-env=BENCH_RUSTC={version}");
}
