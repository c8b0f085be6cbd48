//! Memory that kernels use and leave, kept by each thread: to ask for it anew, zeroed, takes longer than the attention of one
//! token.

use std::cell::Cell;

use super::host::Plain;

/// Threads keep up to this much (bytes); more is given back, and is little beside the work that needs it.
const KEPT: usize = 1 << 20;

thread_local! {
    /// In words that are aligned for every number.
    static MEMORY: Cell<Vec<u64>> = const { Cell::new(Vec::new()) };
}

/// Calls `work` with a slice of `len` numbers, whatever they are.
pub(super) fn with_scratch<T: Plain, R>(len: usize, work: impl FnOnce(&mut [T]) -> R) -> R {
    let words = (len * size_of::<T>()).div_ceil(size_of::<u64>());
    // Taken out: should a kernel call another one, that gets memory of its own.
    let mut memory = MEMORY.take();
    if memory.len() < words {
        memory = vec![0; words];
    }
    let result = work(&mut bytemuck::cast_slice_mut(&mut memory[..words])[..len]);
    if memory.len() * size_of::<u64>() <= KEPT {
        MEMORY.set(memory);
    }
    result
}
