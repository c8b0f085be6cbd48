//! The GPU kernels as CUDA C++, without a GPU: what NVIDIA's compiler makes of them, and what they compute.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use crate::command::{at, cargo, exists, program, root, run, run_tests, skip, succeeds};

/// The Python packages with the compiler and what it needs.
const PACKAGES: [&str; 5] = [
    "nvidia-cuda-nvrtc",
    "nvidia-cuda-cuobjdump",
    "nvidia-cuda-nvdisasm",
    "nvidia-cuda-runtime",
    "nvidia-cuda-crt",
];

/// Counts what the kernels take on an A100 and on an H100.
pub fn registers() -> Result<(), String> {
    const LOOK: &str = "import sys, importlib.metadata as m; list(map(m.version, sys.argv[1:]))";
    // As for the bench.
    let python = env::var("BURN_ATTN_PYTHON").unwrap_or_else(|_| "python3".into());
    if !succeeds(program(&python).args(["-c", LOOK]).args(PACKAGES)) {
        let packages = PACKAGES.join(" ");
        return skip(&format!(
            "--registers needs NVIDIA's compiler: `{python} -m pip install {packages}`"
        ));
    }
    let script = "crates/kernels-cube/count_registers.py";
    run(program(&python)
        .args(["-B", script])
        .arg(sources("registers")?)
        .args(["sm_80", "sm_90"]))
}

/// Runs the kernels on the CPU.
pub fn emulate() -> Result<(), String> {
    if !exists("g++") {
        return skip("--emulate needs g++");
    }
    let folder = sources("emulator")?;
    let script = "crates/kernels-cube/emulator/run.py";
    run(program("python3")
        .args(["-B", script])
        .args([&folder, &folder.join("built")]))
}

/// Writes the kernels as CUDA C++ into a new folder of this name.
fn sources(name: &str) -> Result<PathBuf, String> {
    let folder = root().join(Path::new("target").join(name));
    if folder.exists() {
        // A kernel that is gone would be taken on.
        fs::remove_dir_all(&folder).map_err(at(&folder))?;
    }
    fs::create_dir_all(&folder).map_err(at(&folder))?;
    let test = "test -p burn-attn-kernels-cube --features wgpu generated";
    run_tests(cargo(test).env("BURN_ATTN_SOURCES", &folder))?;
    Ok(folder)
}
