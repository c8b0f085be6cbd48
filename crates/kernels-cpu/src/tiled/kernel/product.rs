//! The matrix product at the bottom of every kernel.
//!
//! All five products of attention (scores, output; weights' gradient, query, key and value gradients) have the same form:
//! numbers of the left matrix, at any two strides, are broadcast over vectors of the right one. Attention packs nothing for it;
//! linear layers of many rows do.

#![allow(
    unsafe_code,
    reason = "a bounds check per number would cost more than the number"
)]

use pulp::{Simd, WithSimd};

use super::real::Real;
use crate::extent::reach;

#[cfg(test)]
mod tests;

/// Rows of the output that stay in registers at once: with two vectors a row, 12 of AVX2's 16 registers are sums.
const ROWS: usize = 6;
/// The same where a vector has 64 bytes: 24 of AVX-512's 32 registers.
const WIDE_ROWS: usize = 12;

/// Rows of the largest block of a product.
pub(crate) fn block_rows<R: Real, S: Simd>() -> usize {
    if size_of::<R::Vector<S>>() == 64 {
        WIDE_ROWS
    } else {
        ROWS
    }
}

/// What the output holds before the product is added.
pub(crate) enum Start<'a, R> {
    /// Nothing: it is overwritten.
    Zero,
    /// Numbers to add to.
    Keep,
    /// Numbers to multiply by one factor per row, and then to add to.
    Scaled(&'a [R]),
}

/// `out[row][column] = start + sum_k left[row][k] · right[k][column]`
pub(crate) struct Product<'a, R> {
    /// Rows of the output.
    pub(crate) rows: usize,
    /// Terms of each sum.
    pub(crate) depth: usize,
    /// `left[row][k]` lies at `row · left_row + k · left_step`.
    pub(crate) left: &'a [R],
    pub(crate) left_row: usize,
    pub(crate) left_step: usize,
    /// `right[k]` starts at `k · right_step`.
    pub(crate) right: &'a [R],
    pub(crate) right_step: usize,
    /// `out[row]` starts at `row · out_row`.
    pub(crate) out: &'a mut [R],
    pub(crate) out_row: usize,
    pub(crate) start: Start<'a, R>,
}

/// Some vectors of columns of a product.
///
/// Passed to `vectorize`, which does not inline it: the compiler sees the innermost loop once, not at every product.
struct Strip<'a, 'b, R, const VECTORS: usize> {
    product: &'a mut Product<'b, R>,
    column: usize,
}

impl<R: Real, const VECTORS: usize> WithSimd for Strip<'_, '_, R, VECTORS> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        self.product.strip::<S, VECTORS>(simd, self.column);
    }
}

impl<R: Real> Product<'_, R> {
    /// Computes the product for `VECTORS` vectors of columns.
    ///
    /// # Panics
    /// A slice is too short for the rows, the depth and the strides.
    #[inline(always)]
    pub(crate) fn run<S: Simd, const VECTORS: usize>(mut self, simd: S) {
        simd.vectorize(Strip::<R, VECTORS> {
            product: &mut self,
            column: 0,
        });
    }

    /// Computes the product for any number of columns that fills whole vectors.
    ///
    /// # Panics
    /// As [`run`](Self::run).
    #[inline(always)]
    pub(crate) fn run_wide<S: Simd>(mut self, simd: S, columns: usize) {
        let lanes = R::lanes::<S>();
        // A strip of the right matrix stays in the nearest cache for all rows.
        let mut column = 0;
        while column + 2 * lanes <= columns {
            simd.vectorize(Strip::<R, 2> {
                product: &mut self,
                column,
            });
            column += 2 * lanes;
        }
        if column < columns {
            simd.vectorize(Strip::<R, 1> {
                product: &mut self,
                column,
            });
        }
    }

    /// `VECTORS` vectors of columns from this one on.
    #[inline(always)]
    fn strip<S: Simd, const VECTORS: usize>(&mut self, simd: S, column: usize) {
        let end = column + VECTORS * R::lanes::<S>();
        if self.rows == 0 {
            return;
        }
        let last_row = self.rows - 1;
        assert!(self.out.len() >= reach([last_row], [self.out_row], end));
        if let Start::Scaled(factors) = self.start {
            assert!(factors.len() >= self.rows);
        }
        if self.depth > 0 {
            let last = self.depth - 1;
            let strides = [self.left_row, self.left_step];
            assert!(self.left.len() >= reach([last_row, last], strides, 1));
            assert!(self.right.len() >= reach([last], [self.right_step], end));
        }

        let out = self.out.as_mut_ptr();
        // More than two vectors a row leave no room for as many rows.
        let wide = VECTORS <= 2 && block_rows::<R, S>() == WIDE_ROWS;
        let mut row = 0;
        while row < self.rows {
            // SAFETY: `row < self.rows`, and the assertions above bound the last row, the last term and the last column
            // of each slice, which are its largest offsets: no smaller one wraps around.
            unsafe {
                let out = out.add(row * self.out_row + column);
                row += match self.rows - row {
                    WIDE_ROWS | 16.. if wide => {
                        self.block::<S, WIDE_ROWS, VECTORS>(simd, row, column, out)
                    }
                    8 | 13..16 if wide => self.block::<S, 8, VECTORS>(simd, row, column, out),
                    // Seven or eight rows are two blocks: a block of one or two waits for its own sums.
                    8 | 7 | 4 => self.block::<S, 4, VECTORS>(simd, row, column, out),
                    ROWS.. => self.block::<S, ROWS, VECTORS>(simd, row, column, out),
                    5 => self.block::<S, 5, VECTORS>(simd, row, column, out),
                    3 => self.block::<S, 3, VECTORS>(simd, row, column, out),
                    2 => self.block::<S, 2, VECTORS>(simd, row, column, out),
                    _ => self.block::<S, 1, VECTORS>(simd, row, column, out),
                };
            }
        }
    }

    /// `COUNT` rows of the output from row `first` on, kept in registers while the sums grow; returns how many.
    ///
    /// # Safety
    /// `out` points at column `column` of row `first`; `COUNT` rows from there lie in the output, and `strip` has checked the
    /// lengths of all slices for them.
    #[inline(always)]
    unsafe fn block<S: Simd, const COUNT: usize, const VECTORS: usize>(
        &self,
        simd: S,
        first: usize,
        column: usize,
        out: *mut R,
    ) -> usize {
        let lanes = R::lanes::<S>();
        let zero = R::splat(simd, R::default());
        let mut sums = [[zero; VECTORS]; COUNT];
        // SAFETY: every offset is at most that of the last row, term and column, which `strip` has checked against the
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
                        let factor = R::splat(simd, *factors.get_unchecked(first + row));
                        for (vector, sum) in sums.iter_mut().enumerate() {
                            let place = out.add(row * self.out_row + vector * lanes);
                            let old = place.cast::<R::Vector<S>>().read_unaligned();
                            *sum = R::times(simd, old, factor);
                        }
                    }
                }
            }
            // Wrapping, because after the last term the pointers may leave their slices, unread.
            let mut left = self.left.as_ptr().wrapping_add(first * self.left_row);
            let mut right = self.right.as_ptr().wrapping_add(column);
            for _ in 0..self.depth {
                let mut columns = [zero; VECTORS];
                for (vector, column) in columns.iter_mut().enumerate() {
                    *column = right
                        .add(vector * lanes)
                        .cast::<R::Vector<S>>()
                        .read_unaligned();
                }
                for (row, sums) in sums.iter_mut().enumerate() {
                    let factor = R::splat(simd, *left.add(row * self.left_row));
                    for (sum, &column) in sums.iter_mut().zip(&columns) {
                        *sum = R::mul_add(simd, factor, column, *sum);
                    }
                }
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
        COUNT
    }
}
