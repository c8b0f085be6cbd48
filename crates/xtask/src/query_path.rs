//! How many files a query passes through on its way to the innermost multiply-add.

use crate::command::{cargo, exists, root};

/// Any test that calls `SelfAttention::forward` on the CPU.
const TEST: &str = "heads::self_attention::self_attention_is_what_its_heads_are_told";

/// Lists them, as the debug symbols name them, and fails if there are too many. `features` are those of the other tests, whose build
/// of Burn it shares.
pub fn count(features: &[&str]) -> Result<(), String> {
    const GDB: &str = "gdb";
    if !exists(GDB) {
        return Err(format!("--path needs {GDB} (Debian: gdb)"));
    }
    let script = root().join("crates/xtask/src/query_path.py");
    let runner = format!(
        "target.'cfg(all())'.runner = ['{GDB}', '-quiet', '-batch', '-x', '{}', '--args']",
        script.display()
    );
    let test = ["test", "--config", &runner, "--test", "modules"];
    let only = ["--", "--exact", TEST];
    // One thread, so that the stack leads from the call to the kernel.
    let environment = [("RAYON_NUM_THREADS", "1"), ("BURN_DEVICE", "flex")];
    cargo(&[&test[..], features, &only[..]].concat(), &environment)
}
