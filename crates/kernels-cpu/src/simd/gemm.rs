//! The GEMM of the kernels.
//!
//! All products of attention (scores, output; gradients of weights, query, key and value) have one form: numbers of the left-hand
//! side, at any two strides, are broadcast over vectors of the right-hand side. Attention packs only operands
//! with a row per query; linear layers of many rows pack their weight.

#![allow(
    unsafe_code,
    reason = "a bounds check per number would cost more than the number"
)]

use pulp::{Simd, WithSimd};

use crate::{extent::reach, simd::real::Real};

#[cfg(test)]
mod tests;

/// Rows of a micro-kernel: with two vectors a row, 12 of AVX2's 16 registers are accumulators.
const ROWS: usize = 6;
/// Rows of a micro-kernel where a vector has 64 bytes: 24 of AVX-512's 32 registers are accumulators.
pub(crate) const WIDE_ROWS: usize = 12;

/// Rows of the largest micro-kernel.
pub(crate) fn micro_kernel_rows<R: Real, S: Simd>() -> usize {
    if size_of::<R::Vector<S>>() == 64 {
        WIDE_ROWS
    } else {
        ROWS
    }
}

/// The factor of the output's old numbers.
pub(crate) enum Beta<'a, R> {
    /// 0: the output is overwritten.
    Zero,
    /// 1: the product is added.
    One,
    /// One factor per row.
    PerRow(&'a [R]),
}

/// `out[row][column] = beta · out[row][column] + sum_k lhs[row][k] · rhs[k][column]`
pub(crate) struct Gemm<'a, R> {
    /// Rows of the output.
    pub(crate) rows: usize,
    /// Terms of each sum.
    pub(crate) depth: usize,
    /// `lhs[row][k]` lies at `row · lhs_rs + k · lhs_cs`.
    pub(crate) lhs: &'a [R],
    pub(crate) lhs_rs: usize,
    pub(crate) lhs_cs: usize,
    /// `rhs[k]` starts at `k · rhs_rs`.
    pub(crate) rhs: &'a [R],
    pub(crate) rhs_rs: usize,
    /// `out[row]` starts at `row · out_rs`.
    pub(crate) out: &'a mut [R],
    pub(crate) out_rs: usize,
    pub(crate) beta: Beta<'a, R>,
}

/// All rows of `VECTORS` vectors of columns.
///
/// Passed to `vectorize`, which does not inline it: the compiler sees the innermost loop once, not at every call.
struct MicroPanel<'a, 'b, R, const VECTORS: usize> {
    gemm: &'a mut Gemm<'b, R>,
    column: usize,
}

impl<R: Real, const VECTORS: usize> WithSimd for MicroPanel<'_, '_, R, VECTORS> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        self.gemm.micro_panel::<S, VECTORS>(simd, self.column);
    }
}

impl<R: Real> Gemm<'_, R> {
    /// Computes any number of columns that fills whole vectors.
    ///
    /// # Panics
    /// A slice is too short for the rows, the depth, the columns and the strides.
    #[inline(always)]
    pub(crate) fn run<S: Simd>(mut self, simd: S, columns: usize) {
        let lanes = R::lanes::<S>();
        // A micro-panel of the right-hand side stays in L1 for all rows.
        let mut column = 0;
        while column + 2 * lanes <= columns {
            simd.vectorize(MicroPanel::<R, 2> {
                gemm: &mut self,
                column,
            });
            column += 2 * lanes;
        }
        if column < columns {
            simd.vectorize(MicroPanel::<R, 1> {
                gemm: &mut self,
                column,
            });
        }
    }

    /// All rows of `VECTORS` vectors of columns from `column` on.
    #[inline(always)]
    fn micro_panel<S: Simd, const VECTORS: usize>(&mut self, simd: S, column: usize) {
        let end = column + VECTORS * R::lanes::<S>();
        if self.rows == 0 {
            return;
        }
        let last_row = self.rows - 1;
        assert!(self.out.len() >= reach([last_row], [self.out_rs], end));
        if let Beta::PerRow(factors) = self.beta {
            assert!(factors.len() >= self.rows);
        }
        if self.depth > 0 {
            let last = self.depth - 1;
            let strides = [self.lhs_rs, self.lhs_cs];
            assert!(self.lhs.len() >= reach([last_row, last], strides, 1));
            assert!(self.rhs.len() >= reach([last], [self.rhs_rs], end));
        }

        let out = self.out.as_mut_ptr();
        let wide = micro_kernel_rows::<R, S>() == WIDE_ROWS;
        let mut row = 0;
        while row < self.rows {
            // SAFETY: `row < self.rows`, and the assertions above bound the last row, the last term and the last column
            // of each slice, which are its largest offsets: no smaller one wraps around.
            unsafe {
                let out = out.add(row * self.out_rs + column);
                row += match self.rows - row {
                    WIDE_ROWS | 16.. if wide => {
                        self.micro_kernel::<S, WIDE_ROWS, VECTORS>(simd, row, column, out)
                    }
                    8 | 13..16 if wide => {
                        self.micro_kernel::<S, 8, VECTORS>(simd, row, column, out)
                    }
                    // 7 and 8 rows are split as 4 + 3 and 4 + 4: one or two rows have too few accumulators to hide the latency of FMA.
                    8 | 7 | 4 => self.micro_kernel::<S, 4, VECTORS>(simd, row, column, out),
                    ROWS.. => self.micro_kernel::<S, ROWS, VECTORS>(simd, row, column, out),
                    5 => self.micro_kernel::<S, 5, VECTORS>(simd, row, column, out),
                    3 => self.micro_kernel::<S, 3, VECTORS>(simd, row, column, out),
                    2 => self.micro_kernel::<S, 2, VECTORS>(simd, row, column, out),
                    _ => self.micro_kernel::<S, 1, VECTORS>(simd, row, column, out),
                };
            }
        }
    }

    /// `COUNT` rows of the output from row `first` on, whose accumulators are registers; returns how many.
    ///
    /// # Safety
    /// `out` points at column `column` of row `first`; `COUNT` rows from there lie in the output, and `micro_panel` has checked the
    /// lengths of all slices for them.
    #[inline(always)]
    unsafe fn micro_kernel<S: Simd, const COUNT: usize, const VECTORS: usize>(
        &self,
        simd: S,
        first: usize,
        column: usize,
        out: *mut R,
    ) -> usize {
        let lanes = R::lanes::<S>();
        let zero = R::splat(simd, R::default());
        let mut sums = [[zero; VECTORS]; COUNT];
        // SAFETY: every offset is at most that of the last row, term and column, which `micro_panel` has checked against the
        // lengths. Vectors of pulp may lie anywhere in memory; the reads and writes do not assume an alignment.
        unsafe {
            match self.beta {
                Beta::Zero => {}
                Beta::One => {
                    for (row, sums) in sums.iter_mut().enumerate() {
                        for (vector, sum) in sums.iter_mut().enumerate() {
                            let place = out.add(row * self.out_rs + vector * lanes);
                            *sum = place.cast::<R::Vector<S>>().read_unaligned();
                        }
                    }
                }
                Beta::PerRow(factors) => {
                    for (row, sums) in sums.iter_mut().enumerate() {
                        let factor = R::splat(simd, *factors.get_unchecked(first + row));
                        for (vector, sum) in sums.iter_mut().enumerate() {
                            let place = out.add(row * self.out_rs + vector * lanes);
                            let old = place.cast::<R::Vector<S>>().read_unaligned();
                            *sum = R::times(simd, old, factor);
                        }
                    }
                }
            }
            // Wrapping, because after the last term the pointers may leave their slices, unread.
            let mut lhs = self.lhs.as_ptr().wrapping_add(first * self.lhs_rs);
            let mut rhs = self.rhs.as_ptr().wrapping_add(column);
            for _ in 0..self.depth {
                let mut columns = [zero; VECTORS];
                for (vector, column) in columns.iter_mut().enumerate() {
                    *column = rhs
                        .add(vector * lanes)
                        .cast::<R::Vector<S>>()
                        .read_unaligned();
                }
                for (row, sums) in sums.iter_mut().enumerate() {
                    let factor = R::splat(simd, *lhs.add(row * self.lhs_rs));
                    for (sum, &column) in sums.iter_mut().zip(&columns) {
                        *sum = R::mul_add(simd, factor, column, *sum);
                    }
                }
                lhs = lhs.wrapping_add(self.lhs_cs);
                rhs = rhs.wrapping_add(self.rhs_rs);
            }
            for (row, sums) in sums.iter().enumerate() {
                for (vector, &sum) in sums.iter().enumerate() {
                    let place = out.add(row * self.out_rs + vector * lanes);
                    place.cast::<R::Vector<S>>().write_unaligned(sum);
                }
            }
        }
        COUNT
    }
}
