//! Rows that several threads write.

#![allow(
    unsafe_code,
    reason = "the rows of different heads, which different threads write, lie interleaved in memory"
)]

use core::marker::PhantomData;

use crate::extent::{reach, row_major};

/// A `[batch, heads, len, dim]` tensor to write, whose last dimension is contiguous and whose others have any stride.
///
/// For example the heads of a `[batch, len, heads, dim]` buffer, which a model merges without a copy.
#[derive(Debug)]
pub struct RowsMut<'a, T> {
    data: *mut T,
    available: usize,
    strides: [usize; 3],
    borrowed: PhantomData<&'a mut [T]>,
}

// SAFETY: it is a borrowed slice of elements that may be sent; a shared reference gives only its size, and all writing goes
// through its heads, which consume it.
unsafe impl<T: Send> Send for RowsMut<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for RowsMut<'_, T> {}

impl<'a, T> RowsMut<'a, T> {
    /// Rows at `batch · strides[0] + head · strides[1] + row · strides[2]`, in elements.
    #[must_use]
    pub fn new(data: &'a mut [T], strides: [usize; 3]) -> Self {
        Self {
            available: data.len(),
            data: data.as_mut_ptr(),
            strides,
            borrowed: PhantomData,
        }
    }

    /// Row-major rows of `heads` heads and `len` rows of `dim` numbers.
    #[must_use]
    pub fn contiguous(data: &'a mut [T], heads: usize, len: usize, dim: usize) -> Self {
        Self::new(data, row_major(heads, len, dim))
    }

    /// The same rows, for a shorter time.
    #[must_use]
    pub fn reborrow(&mut self) -> RowsMut<'_, T> {
        RowsMut {
            borrowed: PhantomData,
            ..*self
        }
    }

    /// As given to [`new`](Self::new).
    pub(crate) fn strides(&self) -> [usize; 3] {
        self.strides
    }

    /// The number of elements behind the rows.
    pub(crate) fn available(&self) -> usize {
        self.available
    }

    /// How many elements a tensor of these sizes spans, or `None` if its rows would overlap.
    pub(crate) fn extent(&self, sizes: [usize; 3], dim: usize) -> Option<usize> {
        if sizes.contains(&0) {
            return Some(0);
        }
        let mut axes = [0, 1, 2].map(|axis| (self.strides[axis], sizes[axis]));
        axes.sort_unstable();
        let mut needed = dim;
        for (stride, size) in axes {
            if size > 1 {
                if stride < needed {
                    return None;
                }
                needed = reach([size - 1], [stride], needed);
            }
        }
        Some(needed)
    }

    /// The heads, batch item after batch item.
    ///
    /// # Panics
    /// The rows overlap or leave the slice; see [`extent`](Self::extent).
    pub(crate) fn heads(
        self,
        sizes: [usize; 3],
        dim: usize,
    ) -> impl Iterator<Item = HeadMut<'a, T>> + Send
    where
        T: Send,
    {
        let needed = self.extent(sizes, dim);
        assert!(
            needed.is_some_and(|needed| self.available >= needed),
            "rows that overlap or leave their slice cannot be written"
        );
        let [batch, heads, rows] = sizes;
        let pieces = if rows == 0 { 0 } else { batch * heads };
        (0..pieces).map(move |piece| self.head(piece / heads, piece % heads, rows, dim))
    }

    fn head(&self, batch_item: usize, head: usize, rows: usize, dim: usize) -> HeadMut<'a, T> {
        let offset = batch_item * self.strides[0] + head * self.strides[1];
        HeadMut {
            first: self.data.wrapping_add(offset),
            stride: self.strides[2],
            rows,
            dim,
            borrowed: PhantomData,
        }
    }
}

/// Some rows of one head, which nothing else writes.
#[derive(Debug)]
pub(crate) struct HeadMut<'a, T> {
    first: *mut T,
    stride: usize,
    rows: usize,
    dim: usize,
    borrowed: PhantomData<&'a mut [T]>,
}

// SAFETY: it stands for mutable slices of elements that may be sent, which no other value stands for.
unsafe impl<T: Send> Send for HeadMut<'_, T> {}

impl<'a, T> HeadMut<'a, T> {
    /// One row.
    ///
    /// # Panics
    /// There are not that many rows.
    pub(crate) fn row(&mut self, row: usize) -> &mut [T] {
        assert!(row < self.rows);
        // SAFETY: `RowsMut::heads`, the only source of heads, has checked that all rows lie in the borrowed slice and
        // that none overlap; it yields each head once, `tiles` each row once, and this borrow is exclusive.
        unsafe { core::slice::from_raw_parts_mut(self.first.add(row * self.stride), self.dim) }
    }

    /// The number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Pieces of at most `size` rows.
    pub(crate) fn tiles(
        self,
        size: usize,
    ) -> impl DoubleEndedIterator<Item = Self> + ExactSizeIterator + Send
    where
        T: Send,
    {
        // Consumes the head, so that its rows belong to the pieces alone.
        (0..self.rows.div_ceil(size)).map(move |tile| self.tile(tile * size, size))
    }

    fn tile(&self, first: usize, size: usize) -> Self {
        Self {
            first: self.first.wrapping_add(first * self.stride),
            rows: size.min(self.rows - first),
            borrowed: PhantomData,
            ..*self
        }
    }
}
