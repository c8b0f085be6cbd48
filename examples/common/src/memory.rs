//! What becomes of memory that tensors have given back.

/// Keeps freed memory for the next tensors, for as long as the program runs.
///
/// The C library of most Linux systems, glibc, returns large blocks to the system as soon as they are freed, and every tensor of the next
/// training step then waits for the system to clear its pages anew. Kept, a training step of MiniLM on two cores takes about a sixth less
/// time, and the program keeps about as much memory as it ever needed. mimalloc and jemalloc, also where told to keep memory, did not
/// make steps faster.
///
/// Call it first in `main`.
pub fn keep_freed() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[allow(unsafe_code, reason = "a setting of the C library")]
    {
        // SAFETY: it changes numbers that other threads read without a lock; there are none yet, or they read one valid number or another.
        unsafe {
            // No block gets a mapping, which would end when the block is freed, unless the block is too large for a thread's heap.
            libc::mallopt(libc::M_MMAP_MAX, 0);
            // The main heap never shrinks.
            libc::mallopt(libc::M_TRIM_THRESHOLD, -1);
        }
    }
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests;
