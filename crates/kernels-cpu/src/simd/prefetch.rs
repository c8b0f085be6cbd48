//! Asking for numbers before they are needed, where they are read once from memory.

#![allow(
    unsafe_code,
    reason = "the instruction takes a pointer, of which it reads nothing that a program could see"
)]

/// How far ahead of the numbers that are multiplied, in bytes: 4 KiB gains less, and 16 KiB loses where all of a batch comes from memory.
const AHEAD: usize = 8 << 10;

/// How many rows, `stride` numbers apart, are [`AHEAD`].
#[inline(always)]
pub(crate) fn rows_ahead<R>(stride: usize) -> usize {
    AHEAD.div_ceil(size_of::<R>().saturating_mul(stride.max(1)))
}

/// Asks for `len` numbers from number `at` on, which may lie behind the slice, or nowhere: nothing is read.
///
/// On x86-64 alone: Rust has no such instruction for ARM, and none is needed in WebAssembly.
#[inline(always)]
pub(crate) fn prefetch<R>(numbers: &[R], at: usize, len: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    for line in (0..len * size_of::<R>()).step_by(64) {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

        let place = numbers.as_ptr().wrapping_add(at).cast::<i8>();
        let place = place.wrapping_add(line);
        // SAFETY: the instruction faults at no address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(place) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = (numbers, at, len);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A single row may have any stride.
    #[test]
    fn any_stride() {
        assert_eq!(rows_ahead::<f32>(64), 32);
        for stride in [0, 1, usize::MAX] {
            let row = rows_ahead::<f64>(stride) + 3;
            prefetch(&[1.0; 4], row.wrapping_mul(stride), 4);
        }
    }
}
