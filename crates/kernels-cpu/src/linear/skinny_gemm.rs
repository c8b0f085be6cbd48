//! A skinny GEMM: a few rows times a large weight, as in decoding. The weight is read once, which takes nearly all of the time.
//!
//! Matrix libraries pack the weight first, which pays off only with many rows.

use core::ops::Range;

use crate::{
    compiled::{Compiled, Kernel},
    extent::elements,
    linear::split_k::{DEPTH, SplitK},
    simd::real::MAX_LANES,
    threads::{
        parallel::{Execution, add_up, for_each},
        scratch::with_scratch,
    },
    view::element::Element,
};

/// With more rows than this, use [`Linear`](crate::tiled::Linear) or a library.
pub const SKINNY_ROWS: usize = 16;
/// Numbers of the product that are added up at once.
const ADDED: usize = 1 << 12;
/// Where the slices of the depth (split-K) end, in 64ths: enough slices for every core of a small machine, the last ones small, so
/// that all threads end at about the same time.
const ENDS: [usize; 10] = [8, 16, 24, 32, 40, 48, 54, 58, 62, 64];

/// `out[r][c] = sum_k x[r][k] · weight[k][c]`
#[derive(Clone, Copy, Debug)]
pub struct SkinnyGemm<'a, T: Element> {
    /// `[rows, depth]`, contiguous.
    pub x: &'a [T::Real],
    /// `[depth, columns]`, contiguous.
    pub weight: &'a [T::Real],
    /// Number of rows.
    pub rows: usize,
    /// Terms of each sum.
    pub depth: usize,
    /// Number of columns.
    pub columns: usize,
}

impl<T: Element> SkinnyGemm<'_, T> {
    /// The terms of a slice. They depend only on the sizes, and so do the bits of the result.
    ///
    /// The rows of a slice are contiguous in the weight, which is the fastest to read.
    fn terms(&self, slice: usize) -> Range<usize> {
        let end = |slice: usize| {
            let end = self.depth * ENDS[slice] / 64;
            end.next_multiple_of(DEPTH).min(self.depth)
        };
        slice.checked_sub(1).map_or(0, end)..end(slice)
    }

    /// Row stride of the sums. A power of two would cause L1 set conflicts.
    fn sums_rs(&self) -> usize {
        elements([self.columns.div_ceil(MAX_LANES) + 1, MAX_LANES])
    }

    /// Numbers of the sums of one slice.
    fn sums(&self) -> usize {
        elements([self.rows, self.sums_rs()])
    }

    /// The product, into `[rows, columns]`, contiguous.
    ///
    /// Same input, same bits, whatever the number of threads.
    ///
    /// # Panics
    /// A slice is too short for the sizes.
    ///
    /// # Cost
    /// `2 · rows · depth · columns` operations; most of the time goes into reading `depth · columns` numbers once.
    pub fn run(&self, out: &mut [T::Real], execution: Execution) {
        let (rows, depth, columns) = (self.rows, self.depth, self.columns);
        let lengths = [self.x.len(), self.weight.len(), out.len()];
        check_lengths(lengths, [rows, depth, columns]);
        if rows == 0 || columns == 0 {
            return;
        }
        with_scratch(ENDS.len() * self.sums(), |sums| {
            self.sum_slices(sums, execution);
            self.add_slices(sums, out, execution);
        });
    }

    /// The sums of each slice.
    fn sum_slices(&self, sums: &mut [T::Real], execution: Execution) {
        // A number of the matrix counts as several operations, because it comes from memory.
        let operations = (self.rows + 8) as f64 * self.depth as f64 * self.columns as f64;
        for_each(
            execution.workers(ENDS.len(), operations),
            DEPTH * MAX_LANES,
            sums.chunks_exact_mut(self.sums()).enumerate(),
            |(slice, sums), rest| {
                let slice = SplitK {
                    x: self.x,
                    weight: self.weight,
                    sizes: [self.rows, self.depth, self.columns],
                    terms: self.terms(slice),
                    sums,
                    sums_rs: self.sums_rs(),
                    rest,
                };
                T::Real::run(Kernel::SkinnyGemm(slice), execution);
            },
        );
    }

    /// Adds the slices up, in their order.
    fn add_slices(&self, sums: &[T::Real], out: &mut [T::Real], execution: Execution) {
        let numbers = ENDS.len() * self.rows * self.columns;
        let rows = out.chunks_exact_mut(self.columns).take(self.rows);
        let pieces = rows.enumerate().flat_map(|(row, out)| {
            let pieces = out.chunks_mut(ADDED).enumerate();
            pieces.map(move |(piece, out)| (row * self.sums_rs() + piece * ADDED, out))
        });
        for_each(
            execution.workers(usize::MAX, numbers as f64),
            0,
            pieces,
            |(first, out), _: &mut [T::Real]| {
                let end = first + out.len();
                let slices = sums.chunks_exact(self.sums());
                add_up(out, slices.map(|sums| &sums[first..end]));
            },
        );
    }
}

/// Panics when `x`, `weight` or `out` of these lengths are too short for so many rows, terms and columns.
pub(crate) fn check_lengths(lengths: [usize; 3], [rows, depth, columns]: [usize; 3]) {
    let needed = [[rows, depth], [depth, columns], [rows, columns]].map(elements);
    for ((name, available), needed) in ["x", "weight", "out"].into_iter().zip(lengths).zip(needed) {
        assert!(
            available >= needed,
            "{name} needs {needed} elements for {rows} rows, {depth} terms and {columns} columns, but has {available}"
        );
    }
}
