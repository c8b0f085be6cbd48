//! Sets of features that no test runs are type-checked.

use crate::command::{cargo, words};

/// Type-checks what CI's tests leave out: one backend alone, no gradients, no backend, models from folders alone.
pub fn small_sets() -> Result<(), String> {
    for features in ["ndarray,autodiff", "flex", ""] {
        let sets =
            "check -p burn-attn-ops -p burn-attn --all-targets --no-default-features --features";
        cargo(&[words(sets), vec![features]].concat(), &[])?;
    }
    // Without the Hub and tokenizers.
    cargo(&["check", "-p", "burn-attn-models"], &[])
}

/// Type-checks the backends that need a GPU, a server or a library, one at a time: a minute or several each.
pub fn other_backends() -> Result<(), String> {
    let backends = [
        "wgpu", "vulkan", "metal", "webgpu", "cpu", "rocm", "cuda", "remote",
    ];
    for backend in backends {
        check(backend)?;
    }
    // Its build script looks for libtorch, and would otherwise load some hundred megabytes.
    const LIBTORCH: [&str; 2] = ["LIBTORCH", "LIBTORCH_USE_PYTORCH"];
    let is_set = |variable: &&str| std::env::var_os(variable).is_some();
    if LIBTORCH.iter().any(is_set) {
        check("tch")
    } else {
        eprintln!("\nskipped: tch needs libtorch, found by LIBTORCH or LIBTORCH_USE_PYTORCH");
        Ok(())
    }
}

fn check(backend: &str) -> Result<(), String> {
    // A target directory of its own, which can be deleted without losing the tests' builds.
    let check = format!(
        "check -p burn-attn --no-default-features --features std,autodiff,{backend} --target-dir target/types"
    );
    // Without a CUDA toolchain the feature can only be type-checked; DOCS_RS skips the download of LLVM.
    cargo(&words(&check), &[("DOCS_RS", "1")])
}
