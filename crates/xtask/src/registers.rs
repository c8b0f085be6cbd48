//! What NVIDIA's compiler makes of the GPU kernels: registers, spilled numbers, shared memory and instructions on matrix units.

use std::{env, fs};

use crate::command::{at, cargo, program, root, run, run_tests, skip, succeeds};

/// The Python packages with the compiler and what it needs.
const PACKAGES: [&str; 5] = [
    "nvidia-cuda-nvrtc",
    "nvidia-cuda-cuobjdump",
    "nvidia-cuda-nvdisasm",
    "nvidia-cuda-runtime",
    "nvidia-cuda-crt",
];

/// Writes the kernels as CUDA C++, and counts what they take on an A100 and on an H100.
pub fn count() -> Result<(), String> {
    const LOOK: &str = "import sys, importlib.metadata as m; list(map(m.version, sys.argv[1:]))";
    // As for the bench.
    let python = env::var("BURN_ATTN_PYTHON").unwrap_or_else(|_| "python3".into());
    if !succeeds(program(&python).args(["-c", LOOK]).args(PACKAGES)) {
        let packages = PACKAGES.join(" ");
        return skip(&format!(
            "--registers needs NVIDIA's compiler: `{python} -m pip install {packages}`"
        ));
    }
    let folder = root().join("target/registers");
    if folder.exists() {
        // A kernel that is gone would be counted on.
        fs::remove_dir_all(&folder).map_err(at(&folder))?;
    }
    fs::create_dir_all(&folder).map_err(at(&folder))?;
    let test = "test -p burn-attn-kernels-cube --features wgpu generated";
    run_tests(cargo(test).env("BURN_ATTN_SOURCES", &folder))?;
    let script = "crates/kernels-cube/count_registers.py";
    run(program(&python)
        .args(["-B", script])
        .arg(&folder)
        .args(["sm_80", "sm_90"]))
}
