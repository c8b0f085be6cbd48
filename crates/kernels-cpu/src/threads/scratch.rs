//! Scratch memory of the kernels. Each thread keeps a part of it, so that calls need not allocate it again and every thread works in memory
//! near its core.

#[cfg(feature = "std")]
use core::cell::Cell;

use alloc::{vec, vec::Vec};
use pulp::bytemuck::{self, Pod};

/// Every piece begins at a multiple of this many bytes: a cache line, and the widest vector.
const LINE: usize = 64;
/// Numbers that fill whole lines in any precision.
pub(crate) const LINE_NUMBERS: usize = LINE / size_of::<f32>();
/// A thread keeps buffers up to this size (bytes) and frees larger ones, whose allocation costs little compared with the work that needs them.
#[cfg(feature = "std")]
const KEPT: usize = 4 << 20;

#[cfg(feature = "std")]
std::thread_local! {
    /// Words, which are aligned for either precision. At most two buffers: one for this thread's calls, one for its part in a call.
    static BUFFERS: Cell<[Vec<u64>; 2]> = const { Cell::new([Vec::new(), Vec::new()]) };
}

/// Calls `work` with `len` numbers of any value. With debug assertions they are NaN.
pub(crate) fn with_scratch<R: Pod, Out>(len: usize, work: impl FnOnce(&mut [R]) -> Out) -> Out {
    if len == 0 {
        return work(&mut []);
    }
    let words = (len * size_of::<R>() + LINE).div_ceil(size_of::<u64>());
    let mut buffer = take_buffer();
    if buffer.len() < words {
        buffer = vec![0; words];
    }
    if cfg!(debug_assertions) {
        // NaN in either precision: a number that is read before it is written spoils a result.
        buffer[..words].fill(u64::MAX);
    }
    let numbers: &mut [R] = bytemuck::cast_slice_mut(&mut buffer[..words]);
    let skipped = numbers.as_ptr().align_offset(LINE).min(numbers.len() - len);
    let result = work(&mut numbers[skipped..][..len]);
    keep(buffer);
    result
}

/// Takes a buffer of this thread; a nested call gets another.
fn take_buffer() -> Vec<u64> {
    #[cfg(feature = "std")]
    {
        // A thread that is ending has no thread-local buffers left.
        let buffer = BUFFERS.try_with(|buffers| {
            let [first, second] = buffers.take();
            buffers.set([second, Vec::new()]);
            first
        });
        buffer.unwrap_or_default()
    }
    #[cfg(not(feature = "std"))]
    Vec::new()
}

fn keep(buffer: Vec<u64>) {
    #[cfg(feature = "std")]
    if buffer.len() * size_of::<u64>() <= KEPT {
        let _ = BUFFERS.try_with(|buffers| {
            let [first, _] = buffers.take();
            buffers.set([buffer, first]);
        });
    }
    #[cfg(not(feature = "std"))]
    drop(buffer);
}

/// Length of a buffer that [`take`] can cut these pieces from.
pub(crate) fn sum_of_pieces<const N: usize>(pieces: [usize; N]) -> usize {
    let rounded = pieces.map(|piece| piece.next_multiple_of(LINE_NUMBERS));
    rounded.iter().sum()
}

/// Cuts the next `len` numbers off a scratch buffer; the next piece begins at a cache line again.
pub(crate) fn take<'a, R>(scratch: &mut &'a mut [R], len: usize) -> &'a mut [R] {
    let taken = len.next_multiple_of(LINE_NUMBERS);
    let (piece, rest) = core::mem::take(scratch).split_at_mut(taken);
    *scratch = rest;
    &mut piece[..len]
}

#[cfg(test)]
mod tests;
