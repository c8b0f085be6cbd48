//! Memory that kernels use and leave.

/// Cuts the next `len` numbers off a scratch buffer.
pub(super) fn take<'a, R>(scratch: &mut &'a mut [R], len: usize) -> &'a mut [R] {
    let (piece, rest) = core::mem::take(scratch).split_at_mut(len);
    *scratch = rest;
    piece
}
