//! A linear layer of many rows, followed by its activation.
//!
//! The weight is packed into micro-panels. Every thread takes blocks of rows, and applies bias and activation to their sums while the
//! sums are in L1.

use core::ops::Range;

use pulp::{Simd, WithSimd};

use crate::{
    linear::{
        activated::{Activated, ActivatedRows, Pass},
        activation::Activation,
        skinny_gemm::check_lengths,
    },
    simd::{
        gemm::{Beta, Gemm, WIDE_ROWS},
        real::{MAX_LANES, Real},
    },
    threads::{
        parallel::{Execution, for_each},
        scratch::with_scratch,
    },
};

/// Terms that are added at once: so many rows of a micro-panel fit into L1.
const DEPTH: usize = 256;
/// Numbers of the weight that are packed at once: the buffer stays below the 4 MiB that a thread keeps.
const PACKED: usize = (1 << 20) - 16;
/// The most rows of a task.
const MOST_ROWS: usize = 96;

/// `out[r][c] = activation(sum_k x[r][k] · weight[k][c] + bias[c])`
///
/// ```
/// use burn_attn_kernels_cpu::tiled::{Activation, Execution, Linear};
///
/// let layer = Linear {
///     x: &[1.0, 2.0],
///     weight: &[3.0, -4.0],
///     bias: &[],
///     rows: 2,
///     depth: 1,
///     columns: 2,
///     activation: Activation::Relu,
/// };
/// let mut out = [0.0; 4];
/// layer.run(&mut out, Execution::available());
/// assert_eq!(out, [3.0, 0.0, 6.0, 0.0]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Linear<'a> {
    /// `[rows, depth]`, contiguous.
    pub x: &'a [f32],
    /// `[depth, columns]`, contiguous.
    pub weight: &'a [f32],
    /// `[columns]`, or empty for none.
    pub bias: &'a [f32],
    /// Number of rows.
    pub rows: usize,
    /// Terms of each sum.
    pub depth: usize,
    /// Number of columns.
    pub columns: usize,
    /// The function that is applied to every sum.
    pub activation: Activation,
}

impl Linear<'_> {
    /// The layer, into `[rows, columns]`, contiguous.
    ///
    /// Same input, same bits, whatever the number of threads.
    ///
    /// # Panics
    /// A slice is too short for the sizes, or the bias has another width.
    ///
    /// # Cost
    /// `2 · rows · depth · columns` operations, and a packed copy of the weight: one micro-panel at a time, or as many as fit into 4 MiB.
    pub fn run(&self, out: &mut [f32], execution: Execution) {
        let (rows, depth, columns) = (self.rows, self.depth, self.columns);
        let lengths = [self.x.len(), self.weight.len(), out.len()];
        check_lengths(lengths, [rows, depth, columns]);
        let bias = self.bias.len();
        assert!(
            bias == 0 || bias == columns,
            "a bias of {bias} numbers does not fit {columns} columns"
        );
        if rows == 0 || columns == 0 {
            return;
        }
        let out = &mut out[..rows * columns];
        let width = execution.dispatch(MicroPanelWidth);
        let micro_panels = (PACKED / (depth.max(1) * width)).max(1);
        for first in (0..columns).step_by(micro_panels * width) {
            let panel = first..columns.min(first + micro_panels * width);
            let packed = panel.len().next_multiple_of(width) * depth;
            with_scratch(packed, |packed| {
                self.pack(packed, panel.clone(), width, execution);
                self.multiply(packed, panel.clone(), out, execution);
            });
        }
    }

    /// The columns of a panel, micro-panel after micro-panel: `[micro_panels, depth, width]`, with zeros after the last column.
    fn pack(&self, packed: &mut [f32], panel: Range<usize>, width: usize, execution: Execution) {
        if self.depth == 0 {
            return;
        }
        let micro_panels = packed.chunks_exact_mut(self.depth * width);
        // A number costs as much as several operations, because it is read from memory and written.
        let workers =
            execution.workers(micro_panels.len(), 8.0 * (panel.len() * self.depth) as f64);
        for_each(
            workers,
            0,
            micro_panels.enumerate(),
            |(micro_panel, packed), _: &mut [f32]| {
                let first = panel.start + micro_panel * width;
                let columns = first..panel.end.min(first + width);
                let rows = self.weight.chunks_exact(self.columns);
                for (packed, row) in packed.chunks_exact_mut(width).zip(rows) {
                    let (numbers, rest) = packed.split_at_mut(columns.len());
                    numbers.copy_from_slice(&row[columns.clone()]);
                    rest.fill(0.0);
                }
            },
        );
    }

    fn multiply(&self, packed: &[f32], panel: Range<usize>, out: &mut [f32], execution: Execution) {
        let operations = 2.0 * self.rows as f64 * self.depth as f64 * panel.len() as f64;
        let workers = execution.workers(self.rows.div_ceil(WIDE_ROWS), operations);
        // Several tasks for each thread, so that all threads end together. A task is a whole number of the largest micro-kernels.
        let rows = self
            .rows
            .div_ceil(8 * workers)
            .next_multiple_of(WIDE_ROWS)
            .min(MOST_ROWS);
        let blocks = out.chunks_mut(rows * self.columns).enumerate();
        for_each(
            workers,
            rows * 2 * MAX_LANES,
            blocks,
            |(block, out), rest| {
                execution.dispatch(RowBlock {
                    layer: self,
                    x: &self.x[block * rows * self.depth..],
                    packed,
                    panel: panel.clone(),
                    out,
                    rest,
                });
            },
        );
    }
}

/// Columns of a micro-panel: two vectors.
struct MicroPanelWidth;

impl WithSimd for MicroPanelWidth {
    type Output = usize;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> usize {
        2 * f32::lanes::<S>()
    }
}

/// Some rows of the output, in the columns of one panel.
struct RowBlock<'a> {
    layer: &'a Linear<'a>,
    /// The rows of the input.
    x: &'a [f32],
    /// `[micro_panels, depth, width]`
    packed: &'a [f32],
    panel: Range<usize>,
    /// Whole rows.
    out: &'a mut [f32],
    /// The sums of the last micro-panel, if its columns do not fill it: rows of `width` numbers.
    rest: &'a mut [f32],
}

impl WithSimd for RowBlock<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Linear {
            depth,
            columns,
            activation,
            ..
        } = *self.layer;
        let width = MicroPanelWidth.with_simd(simd);
        let rows = self.out.len() / columns;
        // Parts of equal length.
        let terms = depth.div_ceil(depth.div_ceil(DEPTH).max(1)).max(1);
        for k in (0..depth.max(1)).step_by(terms) {
            let terms = terms.min(depth - k);
            let last = k + terms == depth;
            for (micro_panel, first) in self.panel.clone().step_by(width).enumerate() {
                let end = self.panel.end.min(first + width);
                let whole = end - first == width;
                let (out, out_rs) = match whole {
                    true => (&mut self.out[first..], columns),
                    false => (&mut *self.rest, width),
                };
                Gemm {
                    rows,
                    depth: terms,
                    lhs: &self.x[k..],
                    lhs_rs: depth,
                    lhs_cs: 1,
                    rhs: &self.packed[(micro_panel * depth + k) * width..],
                    rhs_rs: width,
                    out,
                    out_rs,
                    beta: if k == 0 { Beta::Zero } else { Beta::One },
                }
                .run(simd, width);
                if !last {
                    continue;
                }
                if !whole {
                    let rows = self.out.chunks_exact_mut(columns);
                    for (out, sums) in rows.zip(self.rest.chunks_exact(width)) {
                        out[first..end].copy_from_slice(&sums[..end - first]);
                    }
                }
                let bias = self.layer.bias.get(first..end).unwrap_or(&[]);
                if activation == Activation::Identity && bias.is_empty() {
                    continue;
                }
                simd.vectorize(ActivatedRows {
                    activated: Activated {
                        bias,
                        columns: end - first,
                        activation,
                    },
                    pass: Pass::InPlace {
                        x: &mut self.out[first..],
                        step: columns,
                    },
                });
            }
        }
    }
}
