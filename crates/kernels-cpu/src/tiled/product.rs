//! The matrix product at the bottom of every kernel. The only file of the crate with unsafe code.
//!
//! All five products of attention (scores, output; weights' gradient, query, key and value gradients) have the same form:
//! numbers of the left matrix, at any two strides, are broadcast over vectors of the right one. Nothing is packed for it.

#![allow(
    unsafe_code,
    reason = "the innermost loop reads through pointers: a bounds check per number would cost more than the number"
)]

use pulp::Simd;

use super::real::Real;

/// Rows of the output that stay in registers at once: with two vectors a row, 12 of AVX2's 16 registers are sums.
pub(super) const ROWS: usize = 6;

/// What the output holds before the product is added.
pub(super) enum Start<'a, R> {
    /// Nothing: it is overwritten.
    Zero,
    /// Numbers to add to.
    Keep,
    /// Numbers to multiply by one factor per row, and then to add to.
    Scaled(&'a [R]),
}

/// `out[row][column] = start + sum_k left[row][k] · right[k][column]`, for `VECTORS` vectors of columns.
pub(super) struct Product<'a, R> {
    /// Rows of the output.
    pub(super) rows: usize,
    /// Terms of each sum.
    pub(super) depth: usize,
    /// `left[row][k]` lies at `row · left_row + k · left_step`.
    pub(super) left: &'a [R],
    pub(super) left_row: usize,
    pub(super) left_step: usize,
    /// `right[k]` starts at `k · right_step`.
    pub(super) right: &'a [R],
    pub(super) right_step: usize,
    /// `out[row]` starts at `row · out_row`.
    pub(super) out: &'a mut [R],
    pub(super) out_row: usize,
    pub(super) start: Start<'a, R>,
}

impl<R: Real> Product<'_, R> {
    /// Computes the product for `VECTORS` vectors of columns.
    ///
    /// # Panics
    /// A slice is too short for the rows, the depth and the strides.
    #[inline(always)]
    pub(super) fn run<S: Simd, const VECTORS: usize>(self, simd: S) {
        let columns = VECTORS * R::lanes::<S>();
        if self.rows == 0 {
            return;
        }
        let last_row = self.rows - 1;
        assert!(self.out.len() >= last_row * self.out_row + columns);
        if let Start::Scaled(factors) = self.start {
            assert!(factors.len() >= self.rows);
        }
        if self.depth > 0 {
            let last = self.depth - 1;
            assert!(self.left.len() > last_row * self.left_row + last * self.left_step);
            assert!(self.right.len() >= last * self.right_step + columns);
        }

        let out = self.out.as_mut_ptr();
        let mut row = 0;
        while row < self.rows {
            // SAFETY: `row < self.rows`, and the assertions above bound the last row, the last term and the last column
            // of each slice, which are its largest offsets.
            unsafe {
                let left = self.left.as_ptr().wrapping_add(row * self.left_row);
                let out = out.add(row * self.out_row);
                match self.rows - row {
                    ROWS.. => self.block::<S, ROWS, VECTORS>(simd, row, left, out),
                    5 => self.block::<S, 5, VECTORS>(simd, row, left, out),
                    4 => self.block::<S, 4, VECTORS>(simd, row, left, out),
                    3 => self.block::<S, 3, VECTORS>(simd, row, left, out),
                    2 => self.block::<S, 2, VECTORS>(simd, row, left, out),
                    _ => self.block::<S, 1, VECTORS>(simd, row, left, out),
                }
            }
            row += ROWS;
        }
    }

    /// `COUNT` rows of the output, kept in registers while the sums grow.
    ///
    /// # Safety
    /// `left` and `out` point at row `first`, the first of `COUNT` rows that lie in `self.left` and `self.out`, and `run` has checked
    /// the lengths of all slices.
    #[inline(always)]
    unsafe fn block<S: Simd, const COUNT: usize, const VECTORS: usize>(
        &self,
        simd: S,
        first: usize,
        left: *const R,
        out: *mut R,
    ) {
        let lanes = R::lanes::<S>();
        let zero = R::splat(simd, R::default());
        let mut sums = [[zero; VECTORS]; COUNT];
        // SAFETY: every offset is at most that of the last row, term and column, which `run` has checked against the
        // lengths. Vectors of pulp may lie anywhere in memory; the reads and writes do not assume an alignment.
        unsafe {
            match self.start {
                Start::Zero => {}
                Start::Keep => {
                    for (row, sums) in sums.iter_mut().enumerate() {
                        for (vector, sum) in sums.iter_mut().enumerate() {
                            let place = out.add(row * self.out_row + vector * lanes);
                            *sum = place.cast::<R::Vector<S>>().read_unaligned();
                        }
                    }
                }
                Start::Scaled(factors) => {
                    for (row, sums) in sums.iter_mut().enumerate() {
                        let factor = R::splat(simd, *factors.as_ptr().add(first + row));
                        for (vector, sum) in sums.iter_mut().enumerate() {
                            let place = out.add(row * self.out_row + vector * lanes);
                            let old = place.cast::<R::Vector<S>>().read_unaligned();
                            *sum = R::times(simd, old, factor);
                        }
                    }
                }
            }
            let mut left = left;
            let mut right = self.right.as_ptr();
            for _ in 0..self.depth {
                let mut columns = [zero; VECTORS];
                for (vector, column) in columns.iter_mut().enumerate() {
                    *column = right.add(vector * lanes).cast::<R::Vector<S>>().read_unaligned();
                }
                for (row, sums) in sums.iter_mut().enumerate() {
                    let factor = R::splat(simd, *left.add(row * self.left_row));
                    for (sum, &column) in sums.iter_mut().zip(&columns) {
                        *sum = R::mul_add(simd, factor, column, *sum);
                    }
                }
                // Wrapping, because after the last term the pointers may leave their slices, unread.
                left = left.wrapping_add(self.left_step);
                right = right.wrapping_add(self.right_step);
            }
            for (row, sums) in sums.iter().enumerate() {
                for (vector, &sum) in sums.iter().enumerate() {
                    let place = out.add(row * self.out_row + vector * lanes);
                    place.cast::<R::Vector<S>>().write_unaligned(sum);
                }
            }
        }
    }
}
