//! One slice of the depth of a skinny GEMM.

use core::ops::Range;

use pulp::{Simd, WithSimd};

use crate::simd::{
    gemm::{Beta, Gemm},
    prefetch::prefetch,
    real::{MAX_LANES, Real},
};

/// Terms that are added at once: so many rows of the weight are read side by side, each from start to end.
pub(crate) const DEPTH: usize = 8;

/// Columns that are multiplied at once, whole vectors of any width.
const COLUMNS: usize = 128;

/// How many columns ahead the weight is read.
const AHEAD: usize = 2 * COLUMNS;

/// One slice of the depth: some terms of every sum.
pub struct SplitK<'a, R> {
    pub(crate) x: &'a [R],
    pub(crate) weight: &'a [R],
    /// Rows, depth and columns.
    pub(crate) sizes: [usize; 3],
    pub(crate) terms: Range<usize>,
    /// `[rows, columns]`, rows padded.
    pub(crate) sums: &'a mut [R],
    pub(crate) sums_rs: usize,
    /// The last columns, which do not fill a vector: `[DEPTH, MAX_LANES]`.
    pub(crate) rest: &'a mut [R],
}

impl<R: Real> WithSimd for SplitK<'_, R> {
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
            let mut product = |rhs, rhs_rs, skip: usize, columns| {
                Gemm {
                    rows,
                    depth: count,
                    lhs: &x[k..],
                    lhs_rs: depth,
                    lhs_cs: 1,
                    rhs,
                    rhs_rs,
                    out: &mut self.sums[skip..],
                    out_rs: self.sums_rs,
                    beta: match k == self.terms.start {
                        true => Beta::Zero,
                        false => Beta::One,
                    },
                }
                .run(simd, columns);
            };
            for start in (0..whole).step_by(COLUMNS) {
                // Behind the last columns are the first of the next terms.
                let (terms, at) = match start + AHEAD {
                    at if at < whole => (0, at),
                    at => (DEPTH, at - whole),
                };
                for term in terms..terms + count {
                    prefetch(matrix, term * columns + at, COLUMNS);
                }
                product(&matrix[start..], columns, start, COLUMNS.min(whole - start));
            }
            if whole == columns {
                continue;
            }
            let rows = self
                .rest
                .chunks_exact_mut(MAX_LANES)
                .zip(matrix.chunks_exact(columns));
            for (rest, row) in rows.take(count) {
                rest[..columns - whole].copy_from_slice(&row[whole..]);
            }
            product(&*self.rest, MAX_LANES, whole, lanes);
        }
    }
}
