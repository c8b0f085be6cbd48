//! A linear layer of many rows, followed by its activation.
//!
//! The matrix is packed into strips that are read from start to end. Every thread takes some rows, and applies bias and activation to their
//! sums while they are in the nearest cache.

use core::ops::Range;

use super::{
    few_rows::check_lengths,
    kernel::{
        activation::Activation,
        many_rows::{Pack, RowBlock, StripWidth},
        real::MAX_LANES,
    },
    parallel::{Execution, for_each},
    scratch::with_scratch,
};

/// Terms that are added at once: a strip with this many rows of the matrix stays in the nearest cache.
const DEPTH: usize = 256;
/// Numbers of the matrix that are packed at once: what a thread keeps for them stays below 4 MiB.
const PACKED: usize = (1 << 20) - 16;
/// Rows of a task are a multiple of this, which the largest blocks of the product divide.
const ROWS: usize = 12;
/// The most rows of a task.
const MOST_ROWS: usize = 96;

/// `out[r][c] = activation(sum_k x[r][k] · weight[k][c] + bias[c])`
///
/// ```
/// use burn_attn_kernels_cpu::tiled::{Activation, Execution, ManyRows};
///
/// let layer = ManyRows {
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
pub struct ManyRows<'a> {
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

impl ManyRows<'_> {
    /// The layer, into `[rows, columns]`, contiguous.
    ///
    /// Same input, same bits, whatever the number of threads.
    ///
    /// # Panics
    /// A slice is too short for the sizes, or the bias has another width.
    ///
    /// # Cost
    /// `2 · rows · depth · columns` operations, and a copy of the matrix, one strip or strips of at most 4 MiB at a time.
    pub fn run(&self, out: &mut [f32], execution: Execution) {
        let Self {
            rows,
            depth,
            columns,
            ..
        } = *self;
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
        let width = execution.dispatch(StripWidth);
        let strips = (PACKED / (depth.max(1) * width)).max(1);
        for first in (0..columns).step_by(strips * width) {
            let panel = first..columns.min(first + strips * width);
            let packed = panel.len().next_multiple_of(width) * depth;
            with_scratch(packed, |packed| {
                self.pack(packed, panel.clone(), width, execution);
                self.multiply(packed, panel.clone(), out, execution);
            });
        }
    }

    /// The columns of a panel, strip after strip: `[strips, depth, width]`, with zeros after the last column.
    fn pack(&self, packed: &mut [f32], panel: Range<usize>, width: usize, execution: Execution) {
        if self.depth == 0 {
            return;
        }
        let strips = packed.chunks_exact_mut(self.depth * width);
        // A number is read from memory and written.
        let workers = execution.workers(strips.len(), 8.0 * (panel.len() * self.depth) as f64);
        for_each(
            workers,
            0,
            strips.enumerate(),
            |(strip, packed), _: &mut [f32]| {
                let first = panel.start + strip * width;
                let columns = first..panel.end.min(first + width);
                Pack {
                    weight: self.weight,
                    row: self.columns,
                    columns,
                    packed,
                    width,
                }
                .run();
            },
        );
    }

    fn multiply(&self, packed: &[f32], panel: Range<usize>, out: &mut [f32], execution: Execution) {
        let operations = 2.0 * self.rows as f64 * self.depth as f64 * panel.len() as f64;
        let workers = execution.workers(self.rows.div_ceil(ROWS), operations);
        // Several tasks for each thread, so that all end together.
        let rows = self
            .rows
            .div_ceil(8 * workers)
            .next_multiple_of(ROWS)
            .min(MOST_ROWS);
        let blocks = out.chunks_mut(rows * self.columns).enumerate();
        for_each(
            workers,
            rows * 2 * MAX_LANES,
            blocks,
            |(block, out), rest| {
                execution.dispatch(RowBlock {
                    x: &self.x[block * rows * self.depth..],
                    depth: self.depth,
                    terms: self
                        .depth
                        .div_ceil(self.depth.div_ceil(DEPTH).max(1))
                        .max(1),
                    packed,
                    bias: self.bias,
                    activation: self.activation,
                    panel: panel.clone(),
                    columns: self.columns,
                    out,
                    rest,
                });
            },
        );
    }
}
