//! The rows of one head, converted to the precision of the computation.

use core::ops::Range;

use crate::view::{
    element::Element,
    rows::{Block, Head, Rows},
};

/// The rows of one batch item and head.
pub(crate) struct HeadRows<'a, T> {
    rows: Rows<'a, T>,
    batch_item: usize,
    head: usize,
}

impl<'a, T> HeadRows<'a, T> {
    pub(crate) fn new(rows: Rows<'a, T>, batch_item: usize, head: usize) -> Self {
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

    fn unpadded<'s>(
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
        T::to_reals(&data[..out.len()], out);
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
        T::to_reals(&data[row * stride..][..dim], &mut to[..dim]);
    }
}
