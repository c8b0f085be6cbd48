//! Where the rows of a tensor are, and how tiles access them.

use core::ops::Range;

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

    /// How many elements a tensor of these sizes spans.
    pub(crate) fn extent(&self, sizes: [usize; 3], dim: usize) -> usize {
        if sizes.contains(&0) {
            return 0;
        }
        reach(sizes.map(|size| size - 1), self.strides, dim)
    }

    /// The number of elements behind the view.
    pub(crate) fn available(&self) -> usize {
        self.data.len()
    }

    /// The rows of one head.
    pub(crate) fn head(&self, batch_item: usize, head: usize) -> Block<'a, T> {
        let [batch, heads, stride] = self.strides;
        // A tensor without rows may have no elements.
        let data = self.data.get(batch_item * batch + head * heads..);
        let data = data.unwrap_or_default();
        Block { data, stride }
    }
}

/// Consecutive rows.
#[derive(Clone, Copy)]
pub(crate) struct Block<'a, R> {
    /// Row `i` starts at `i · stride`.
    pub(crate) data: &'a [R],
    pub(crate) stride: usize,
}

impl<R> Block<'_, R> {
    /// The rows from this one on.
    pub(crate) fn after(self, row: usize) -> Self {
        Self {
            data: &self.data[row * self.stride..],
            stride: self.stride,
        }
    }
}

/// One head of a tensor as tiles read it, whatever its element type.
pub(crate) trait Head<R>: Sync {
    /// The rows from this one on, if they are in the precision of the computation.
    fn in_place(&self, row: usize) -> Option<Block<'_, R>>;

    /// Copies rows of `dim` numbers, in the precision of the computation, to places `padded` numbers apart.
    fn copy(&self, rows: Range<usize>, dim: usize, padded: usize, to: &mut [R]);

    /// The rows, in place or copied to `buffer`, which holds as many rows of length `padded`.
    ///
    /// Every row can be read up to `padded`; what is after `dim` is meaningless. Rows that are read `once` are copied only if they must be
    /// converted.
    fn block<'s>(
        &'s self,
        rows: Range<usize>,
        dim: usize,
        padded: usize,
        once: bool,
        buffer: &'s mut [R],
    ) -> Block<'s, R> {
        match self.in_place(rows.start) {
            // Rows far apart (heads inside a wider matrix) share few cache sets: reading them over and over is slower than
            // copying them once.
            Some(block) if once || block.stride == dim && dim == padded => block,
            _ => {
                self.copy(rows, dim, padded, buffer);
                Block {
                    data: buffer,
                    stride: padded,
                }
            }
        }
    }
}
