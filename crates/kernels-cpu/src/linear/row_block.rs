//! Blocks of rows of a linear layer, and the packing of its weight.

use core::ops::Range;

use pulp::{Simd, WithSimd};

use crate::{
    linear::activation::{Activation, ActivationForward, ForwardRows},
    simd::{
        gemm::{Beta, Gemm},
        real::Real,
    },
};

/// Vectors of a micro-panel.
const VECTORS: usize = 2;

/// Columns of a micro-panel: as many as the vectors in a row of sums hold.
pub(crate) struct MicroPanelWidth;

impl WithSimd for MicroPanelWidth {
    type Output = usize;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> usize {
        VECTORS * f32::lanes::<S>()
    }
}

/// Copies some columns of a matrix so that they are side by side.
pub(crate) struct Pack<'a> {
    /// Rows of `row` numbers.
    pub(crate) weight: &'a [f32],
    pub(crate) row: usize,
    pub(crate) columns: Range<usize>,
    /// `[depth, width]`
    pub(crate) packed: &'a mut [f32],
    pub(crate) width: usize,
}

impl Pack<'_> {
    pub(crate) fn run(self) {
        let rows = self.weight.chunks_exact(self.row);
        for (packed, row) in self.packed.chunks_exact_mut(self.width).zip(rows) {
            let (numbers, rest) = packed.split_at_mut(self.columns.len());
            numbers.copy_from_slice(&row[self.columns.clone()]);
            rest.fill(0.0);
        }
    }
}

/// Some rows of the output, in the columns of one panel.
pub(crate) struct RowBlock<'a> {
    /// The rows of the input.
    pub(crate) x: &'a [f32],
    pub(crate) depth: usize,
    /// Terms that are added at once.
    pub(crate) terms: usize,
    /// `[micro_panels, depth, width]`
    pub(crate) packed: &'a [f32],
    /// The bias of all columns, or empty.
    pub(crate) bias: &'a [f32],
    pub(crate) activation: Activation,
    pub(crate) panel: Range<usize>,
    /// The columns of the output.
    pub(crate) columns: usize,
    /// Whole rows.
    pub(crate) out: &'a mut [f32],
    /// The last micro-panel, where its columns do not fill it: rows of `width` numbers.
    pub(crate) rest: &'a mut [f32],
}

impl WithSimd for RowBlock<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let width = VECTORS * f32::lanes::<S>();
        let (columns, rows) = (self.columns, self.out.len() / self.columns);
        for k in (0..self.depth.max(1)).step_by(self.terms) {
            let terms = self.terms.min(self.depth - k);
            let last = k + terms == self.depth;
            for (micro_panel, first) in self.panel.clone().step_by(width).enumerate() {
                let end = self.panel.end.min(first + width);
                let whole = end - first == width;
                let product = |out, out_rs| Gemm {
                    rows,
                    depth: terms,
                    lhs: &self.x[k..],
                    lhs_rs: self.depth,
                    lhs_cs: 1,
                    rhs: &self.packed[(micro_panel * self.depth + k) * width..],
                    rhs_rs: width,
                    out,
                    out_rs,
                    beta: if k == 0 { Beta::Zero } else { Beta::One },
                };
                match whole {
                    true => product(&mut self.out[first..], columns).run::<S, VECTORS>(simd),
                    false => product(&mut *self.rest, width).run::<S, VECTORS>(simd),
                }
                if !last {
                    continue;
                }
                if !whole {
                    let rows = self.out.chunks_exact_mut(columns);
                    for (out, sums) in rows.zip(self.rest.chunks_exact(width)) {
                        out[first..end].copy_from_slice(&sums[..end - first]);
                    }
                }
                let bias = self.bias.get(first..end).unwrap_or(&[]);
                if self.activation == Activation::Identity && bias.is_empty() {
                    continue;
                }
                simd.vectorize(ActivationForward {
                    rows: ForwardRows::InPlace {
                        x: &mut self.out[first..],
                        step: columns,
                    },
                    bias,
                    columns: end - first,
                    activation: self.activation,
                });
            }
        }
    }
}
