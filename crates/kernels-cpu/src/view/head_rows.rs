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

    fn starting_at(&self, row: usize) -> &'a [T] {
        self.rows.starting_at(self.batch_item, self.head, row)
    }
}

impl<T: Element> Head<T::Real> for HeadRows<'_, T> {
    fn in_place(&self, row: usize) -> Option<Block<'_, T::Real>> {
        let data = T::as_real(self.starting_at(row))?;
        let stride = self.rows.strides[2];
        Some(Block { data, stride })
    }

    fn copy(&self, rows: Range<usize>, dim: usize, padded: usize, to: &mut [T::Real]) {
        for (row, to) in rows.zip(to.chunks_exact_mut(padded)) {
            T::to_reals(&self.starting_at(row)[..dim], &mut to[..dim]);
        }
    }
}
