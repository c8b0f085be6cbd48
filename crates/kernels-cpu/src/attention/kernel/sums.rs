//! Sums over queries: the gradients of keys, values and biases.

use core::ops::Range;

use pulp::Simd;

use crate::{
    attention::kernel::{
        seen::Scores,
        tile::Tile,
        transpose::{micro_panel_widths, transpose_eights},
    },
    simd::{
        gemm::{Beta, Gemm, micro_kernel_rows},
        real::Real,
    },
};

/// Where the gradient of the bias of one head is summed.
pub(crate) struct BiasGradient<'a, R> {
    /// From query 0 and key 0 on.
    pub(crate) sums: &'a mut [R],
    /// Strides of queries and keys.
    pub(crate) strides: [usize; 2],
}

impl<R: Real> BiasGradient<'_, R> {
    /// Adds the gradients of a panel, which has one row per key, to those of the bias, which has one row per query.
    #[inline(always)]
    pub(crate) fn add<S: Simd>(&mut self, simd: S, gradients: &Scores<'_, R>) {
        let (queries, keys) = (gradients.seen.panel.queries, &gradients.seen.keys);
        let (gradients, stride) = (&*gradients.numbers, gradients.stride);
        let [of_queries, of_keys] = self.strides;
        let sums = &mut self.sums[queries.first * of_queries + keys.start * of_keys..];
        // Four queries and eight keys at a time, if the keys of the sums are next to each other.
        let (mut whole_queries, mut whole_keys) = (0, 0);
        if of_keys == 1 {
            (whole_queries, whole_keys) = (queries.count / 4 * 4, keys.len() / 8 * 8);
        }
        for query in (0..whole_queries).step_by(4) {
            for key in (0..whole_keys).step_by(8) {
                let mut rows = [[R::default(); 4]; 8];
                for (index, row) in rows.iter_mut().enumerate() {
                    row.copy_from_slice(&gradients[(key + index) * stride + query..][..4]);
                }
                let rows = transpose_eights::<S, R>(simd, &rows);
                for (index, row) in rows.iter().enumerate() {
                    let sums = &mut sums[(query + index) * of_queries + key..][..8];
                    for (sum, &gradient) in sums.iter_mut().zip(row) {
                        *sum = *sum + gradient;
                    }
                }
            }
        }
        for query in 0..queries.count {
            let rest = if query < whole_queries { whole_keys } else { 0 };
            for key in rest..keys.len() {
                let sum = &mut sums[query * of_queries + key * of_keys];
                *sum = *sum + gradients[key * stride + query];
            }
        }
    }
}

/// Products that sum over the queries of a tile.
pub(crate) struct SumOverQueries<'a> {
    pub(crate) tile: &'a Tile,
    pub(crate) keys: Range<usize>,
    /// First row and row after the last that each panel has computed.
    pub(crate) computed: &'a [(usize, usize)],
    /// Row stride of the left-hand side.
    pub(crate) stride: usize,
}

impl SumOverQueries<'_> {
    /// `sums[key] += sum over queries of lhs[key][query] · rhs[query]`, over the panels that have computed the key's row.
    ///
    /// The sums have one row of `padded` numbers per key of the head, the right-hand side is packed.
    #[inline(always)]
    pub(crate) fn add<S: Simd, R: Real>(
        &self,
        simd: S,
        lhs: &[R],
        rhs: &[R],
        padded: usize,
        sums: &mut [R],
    ) {
        // One bit per panel that has computed the row. Rows with the same panels are summed in one product for each group of
        // neighbouring panels.
        let known = |row: usize| {
            let panels = self.computed.iter().rev();
            panels.fold(0_u64, |known, &(first, end)| {
                known << 1 | u64::from(first <= row && row < end)
            })
        };
        let (tile, keys, rows) = (self.tile, self.keys.len(), micro_kernel_rows::<R, S>());
        let mut row = 0;
        while row < keys {
            let panels = known(row);
            let mut end = row + rows;
            while end < keys && known(end) == panels {
                end += rows;
            }
            let end = end.min(keys);
            let mut rest = panels;
            while rest != 0 {
                let first = rest.trailing_zeros();
                let count = (rest >> first).trailing_ones();
                rest &= !(u64::MAX >> (u64::BITS - count) << first);
                let last = tile.panel((first + count - 1) as usize);
                let from = tile.panel(first as usize).column;
                let to = last.column + last.columns;
                let mut start = 0;
                for (dimension, width) in micro_panel_widths(padded, tile.lanes) {
                    let micro_panel = &rhs[start + from * width..start + to * width];
                    start += tile.columns() * width;
                    Gemm {
                        rows: end - row,
                        depth: to - from,
                        lhs: &lhs[row * self.stride + from..],
                        lhs_rs: self.stride,
                        lhs_cs: 1,
                        rhs: micro_panel,
                        rhs_rs: width,
                        out: &mut sums[(self.keys.start + row) * padded + dimension..],
                        out_rs: padded,
                        beta: Beta::One,
                    }
                    .run(simd, width);
                }
            }
            row = end;
        }
    }
}

/// The dot product of two rows that fill whole vectors.
#[inline(always)]
pub(crate) fn dot<S: Simd, R: Real>(simd: S, a: &[R], b: &[R]) -> R {
    let mut sum = R::splat(simd, R::default());
    for (&a, &b) in R::vectors::<S>(a).iter().zip(R::vectors::<S>(b)) {
        sum = R::mul_add(simd, a, b, sum);
    }
    R::reduce_sum(simd, sum)
}
