//! The program: it shows the page, and makes the models that the page runs. In WebAssembly, it is what the page runs.

#[cfg(not(target_arch = "wasm32"))]
mod commands;
#[cfg(target_arch = "wasm32")]
mod exports;

#[cfg(not(target_arch = "wasm32"))]
fn main() -> std::process::ExitCode {
    commands::run()
}

/// A page calls the exports instead.
#[cfg(target_arch = "wasm32")]
fn main() {}
