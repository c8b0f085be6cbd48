//! The explorer's page: built for the browser, and tested in one.

use crate::command::{exists, program, run};
use crate::examples::built;
use crate::kernels::{WASM, wasm_cargo};
use crate::page::script;

/// Builds the module that the page runs, and the example that is computed beforehand.
pub fn build() -> Result<(), String> {
    // Removes what the page does not call.
    const METADCE: &str = "wasm-metadce";
    if !exists(METADCE) {
        return Err(format!("--explorer needs {METADCE} (Debian: binaryen)"));
    }
    let build = "build -p explorer --bin explorer --profile page";
    let mut cargo = wasm_cargo("--explorer", build)?;
    run(cargo.env("RUSTFLAGS", "-C target-feature=+simd128"))?;
    let module = format!("target/wasm/{WASM}/page/explorer.wasm");
    run(program("node").args(["examples/explorer/pack.mjs", &module]))
}

/// Opens the page in a Chromium and compares all that it shows with the native program. Without a Chromium, only a developer's machine
/// may pass over it.
pub fn check() -> Result<(), String> {
    match script("the explorer", "examples/explorer/tests/page.mjs")? {
        Some(mut page) => run(page.arg(built("explorer").get_program())),
        None => Ok(()),
    }
}
