//! Peak memory of one iteration, from what Linux counts for the process.

use std::fs;

/// Bytes that `run` needed at its peak beyond what the process held before; `None` where Linux's `/proc` is missing.
pub fn extra_peak(run: impl FnOnce()) -> Option<u64> {
    // 5 sets the high-water mark back to what is held now (proc_pid_clear_refs(5)).
    let reset = fs::write("/proc/self/clear_refs", "5");
    let before = status("VmRSS:");
    run();
    reset.ok()?;
    Some(status("VmHWM:")?.saturating_sub(before?))
}

/// Makes this process the one that Linux ends first when memory runs out, rather than another one.
pub fn volunteer_for_oom() {
    // Best effort: a machine without the file has another policy.
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
}

/// A field of `/proc/self/status`, in bytes.
fn status(field: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}
