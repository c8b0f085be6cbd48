//! Where the rows of a tensor lie, and how tiles get at them.

use core::ops::Range;

use super::{Element, real::Real};
use crate::extent::{reach, row_major};

/// A `[batch, heads, len, dim]` tensor whose last dimension is contiguous and whose others have any stride.
///
/// Strides of 0 repeat a row, so that broadcast and permuted tensors need no copy.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a, T> {
    data: &'a [T],
    strides: [usize; 3],
}

impl<'a, T> Rows<'a, T> {
    /// Rows at `batch · strides[0] + head · strides[1] + row · strides[2]`, in elements.
    #[must_use]
    pub fn new(data: &'a [T], strides: [usize; 3]) -> Self {
        Self { data, strides }
    }

    /// Row-major rows of `heads` heads and `len` rows of `dim` numbers.
    #[must_use]
    pub fn contiguous(data: &'a [T], heads: usize, len: usize, dim: usize) -> Self {
        Self::new(data, row_major(heads, len, dim))
    }

    /// How many elements a tensor of these sizes reaches into.
    pub(super) fn extent(&self, batch: usize, heads: usize, len: usize, dim: usize) -> usize {
        if batch == 0 || heads == 0 || len == 0 {
            return 0;
        }
        reach([batch - 1, heads - 1, len - 1], self.strides, dim)
    }

    /// The number of elements behind the view.
    pub(super) fn available(&self) -> usize {
        self.data.len()
    }

    /// The elements from the first of this row on.
    pub(super) fn starting_at(&self, batch_item: usize, head: usize, row: usize) -> &'a [T] {
        let [batch, heads, rows] = self.strides;
        &self.data[batch_item * batch + head * heads + row * rows..]
    }
}

/// Consecutive rows in the precision of the computation.
#[derive(Clone, Copy)]
pub(super) struct Block<'a, R> {
    /// Row `i` starts at `i · stride`.
    pub(super) data: &'a [R],
    pub(super) stride: usize,
}

/// One head of a tensor, as tiles read it: the element type is gone.
pub(super) trait Head<R>: Sync {
    /// The rows, where they lie or copied to `buffer`, which holds as many rows of length `padded`.
    ///
    /// Every row can be read up to `padded`; what stands beyond `dim` means nothing.
    fn block<'s>(
        &'s self,
        rows: Range<usize>,
        dim: usize,
        padded: usize,
        buffer: &'s mut [R],
    ) -> Block<'s, R>;

    /// The rows, copied only to be converted, for those who read them once.
    fn passing<'s>(&'s self, rows: Range<usize>, dim: usize, buffer: &'s mut [R]) -> Block<'s, R>;

    /// Copies one row.
    fn row(&self, row: usize, out: &mut [R]);
}

/// The rows of one batch item and head.
pub(super) struct HeadRows<'a, T> {
    rows: Rows<'a, T>,
    batch_item: usize,
    head: usize,
}

impl<'a, T> HeadRows<'a, T> {
    pub(super) fn new(rows: Rows<'a, T>, batch_item: usize, head: usize) -> Self {
        Self {
            rows,
            batch_item,
            head,
        }
    }
}

impl<T: Element> Head<T::Real> for HeadRows<'_, T> {
    fn block<'s>(
        &'s self,
        rows: Range<usize>,
        dim: usize,
        padded: usize,
        buffer: &'s mut [T::Real],
    ) -> Block<'s, T::Real> {
        let data = self
            .rows
            .starting_at(self.batch_item, self.head, rows.start);
        let stride = self.rows.strides[2];
        // Rows far apart (heads inside a wider matrix) share few cache sets: reading them over and over is slower than
        // copying them once.
        if stride == dim
            && dim == padded
            && let Some(data) = T::as_real(data)
        {
            return Block { data, stride };
        }
        copy_rows(data, stride, rows.len(), dim, padded, buffer);
        Block {
            data: buffer,
            stride: padded,
        }
    }

    fn passing<'s>(
        &'s self,
        rows: Range<usize>,
        dim: usize,
        buffer: &'s mut [T::Real],
    ) -> Block<'s, T::Real> {
        let data = self
            .rows
            .starting_at(self.batch_item, self.head, rows.start);
        let stride = self.rows.strides[2];
        if let Some(data) = T::as_real(data) {
            return Block { data, stride };
        }
        copy_rows(data, stride, rows.len(), dim, dim, buffer);
        Block {
            data: buffer,
            stride: dim,
        }
    }

    fn row(&self, row: usize, out: &mut [T::Real]) {
        let data = self.rows.starting_at(self.batch_item, self.head, row);
        copy(&data[..out.len()], out);
    }
}

fn copy_rows<T: Element>(
    data: &[T],
    stride: usize,
    rows: usize,
    dim: usize,
    padded: usize,
    to: &mut [T::Real],
) {
    for (row, to) in (0..rows).zip(to.chunks_exact_mut(padded)) {
        copy(&data[row * stride..][..dim], &mut to[..dim]);
    }
}

/// Converts elements to numbers.
fn copy<T: Element>(from: &[T], to: &mut [T::Real]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = from.to_real();
    }
}

/// Converts numbers to elements.
pub(super) fn store<T: Element>(from: &[T::Real], to: &mut [T]) {
    for (to, &from) in to.iter_mut().zip(from) {
        *to = T::from_real(from);
    }
}

/// Cuts the next `len` numbers off a scratch buffer.
pub(super) fn take<'a, R: Real>(scratch: &mut &'a mut [R], len: usize) -> &'a mut [R] {
    let (piece, rest) = core::mem::take(scratch).split_at_mut(len);
    *scratch = rest;
    piece
}
