//! Some terms of a product of few rows.

use core::ops::Range;

use pulp::{Simd, WithSimd};

use super::{
    product::{Product, Start},
    real::{MAX_LANES, Real},
};

/// Terms of the sums that are added at once: the rows of the matrix that are read side by side, each from start to end.
pub(crate) const DEPTH: usize = 8;

/// Some terms of all sums.
pub struct Part<'a, R> {
    pub(crate) x: &'a [R],
    pub(crate) weight: &'a [R],
    /// Rows, depth and columns.
    pub(crate) sizes: [usize; 3],
    pub(crate) terms: Range<usize>,
    /// `[rows, columns]`, rows padded.
    pub(crate) sums: &'a mut [R],
    pub(crate) sums_row: usize,
    /// The last columns, which do not fill a vector: `[DEPTH, MAX_LANES]`.
    pub(crate) rest: &'a mut [R],
}

impl<R: Real> WithSimd for Part<'_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (x, weight) = (self.x, self.weight);
        let [rows, depth, columns] = self.sizes;
        let lanes = R::lanes::<S>();
        let whole = columns / lanes * lanes;
        if self.terms.is_empty() {
            self.sums.fill(R::default());
        }
        self.rest.fill(R::default());
        for k in self.terms.clone().step_by(DEPTH) {
            let count = DEPTH.min(self.terms.end - k);
            let matrix = &weight[k * columns..];
            let start = || match k == self.terms.start {
                true => Start::Zero,
                false => Start::Keep,
            };
            Product {
                rows,
                depth: count,
                left: &x[k..],
                left_row: depth,
                left_step: 1,
                right: matrix,
                right_step: columns,
                out: &mut *self.sums,
                out_row: self.sums_row,
                start: start(),
            }
            .run_wide(simd, whole);
            if whole == columns {
                continue;
            }
            for (row, rest) in self
                .rest
                .chunks_exact_mut(MAX_LANES)
                .enumerate()
                .take(count)
            {
                let row = &matrix[row * columns..(row + 1) * columns];
                rest[..columns - whole].copy_from_slice(&row[whole..]);
            }
            Product {
                rows,
                depth: count,
                left: &x[k..],
                left_row: depth,
                left_step: 1,
                right: &*self.rest,
                right_step: MAX_LANES,
                out: &mut self.sums[whole..],
                out_row: self.sums_row,
                start: start(),
            }
            .run_wide(simd, lanes);
        }
    }
}
