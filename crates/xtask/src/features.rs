//! Sets of features that no other test runs: type-checked, or tested on their own.

use crate::command::{cargo, run, run_tests};
use crate::examples::on_the_cpu;

/// Type-checks what CI's tests leave out: one backend alone, no gradients, no backend, models from folders alone.
pub fn small_sets() -> Result<(), String> {
    let none = "--all-targets --no-default-features";
    let both = format!("check -p burn-attn-ops -p burn-attn {none}");
    run(&mut cargo(&format!("{both} --features ndarray,autodiff")))?;
    run(&mut cargo(&both))?;
    // A backend without gradients: of burn-attn's code, the two above have every part.
    run(&mut cargo(&format!(
        "check -p burn-attn-ops {none} --features flex"
    )))?;
    // Without the Hub and tokenizers.
    run(&mut cargo("check -p burn-attn-models"))?;
    run(&mut cargo("check -p burn-attn-models --features vision"))
}

/// Tests the op on a server on the loopback interface.
pub fn remote() -> Result<(), String> {
    let test = "test -p burn-attn-tests --features remote --test op a_remote_server_agrees_with_the_oracle";
    run_tests(&mut on_the_cpu(cargo(test)))
}

/// Type-checks the backends that need a GPU, a server or a library, one at a time: a minute or several each.
pub fn other_backends() -> Result<(), String> {
    let mut backends = vec![
        "wgpu", "vulkan", "metal", "webgpu", "cpu", "rocm", "cuda", "remote",
    ];
    // The build script of tch looks for libtorch, and would otherwise load some hundred megabytes.
    let variables = ["LIBTORCH", "LIBTORCH_USE_PYTORCH"];
    match variables
        .iter()
        .any(|variable| std::env::var_os(variable).is_some())
    {
        true => backends.push("tch"),
        false => {
            eprintln!("\nskipped: tch needs libtorch, found by LIBTORCH or LIBTORCH_USE_PYTORCH");
        }
    }
    for backend in backends {
        // A separate target directory, which can be deleted without losing the tests' builds.
        let check = format!(
            "check -p burn-attn --no-default-features --features std,autodiff,{backend} --target-dir target/types"
        );
        // Without a CUDA toolchain the feature can only be type-checked; DOCS_RS skips the download of LLVM.
        run(cargo(&check).env("DOCS_RS", "1"))?;
    }
    Ok(())
}
