//! How queries and keys are divided.

use core::{f64::consts::LOG2_E, ops::Range};

use crate::simd::real::{MAX_LANES, Real};

/// Queries of one task: they share each block of keys while it is in the cache.
pub(crate) const QUERIES: usize = 128;
/// Keys of one block in the forward pass.
pub(crate) const FORWARD_KEYS: usize = 192;
/// Keys of one block in the backward pass, which keeps two blocks of scores.
pub(crate) const BACKWARD_KEYS: usize = 128;
/// The most queries of a panel on any machine: two vectors.
pub(crate) const WIDEST_PANEL: usize = 2 * MAX_LANES;

/// The number of tasks that share the work of each head, which can be cut into at most `most` pieces: a call has at least 8 tasks if it has as many
/// pieces. The 8 is a constant, so that the bits of the result do not depend on the number of threads.
///
/// The parallelism is at most `heads · ⌈8 / heads⌉`.
pub(crate) fn tasks_per_head(heads: usize, most: usize) -> usize {
    8_usize.div_ceil(heads.max(1)).min(most).max(1)
}

/// Length of a row that is read and written in whole vectors, on any machine.
pub(crate) fn padded(dim: usize) -> usize {
    dim.next_multiple_of(MAX_LANES)
}

/// Returns the factor that is left for the rows: the scale, or 1 if the precision does not hold the scale and the rows were multiplied by it here.
pub(crate) fn prescale<R: Real>(scale: f64, rows: &mut [R]) -> f64 {
    let range = R::MIN_POSITIVE.to_f64()..=R::MAX.to_f64() / LOG2_E;
    if scale == 0.0 || range.contains(&scale.abs()) {
        return scale;
    }
    for x in rows {
        *x = R::from_f64(x.to_f64() * scale);
    }
    1.0
}

/// Neighbouring queries of one head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queries {
    pub(crate) batch_item: usize,
    /// Query head.
    pub(crate) head: usize,
    /// Index of the first query.
    pub(crate) first: usize,
    pub(crate) count: usize,
}

impl Queries {
    pub(crate) fn range(&self) -> Range<usize> {
        self.first..self.first + self.count
    }
}

/// A few neighbouring queries whose scores are side by side in one or two vectors.
///
/// All matrices of a panel are transposed: one row per key (or dimension), one column per query.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Panel {
    pub(crate) queries: Queries,
    /// One or two vectors; the columns after the queries are empty.
    pub(crate) columns: usize,
    /// First column of the panel in its tile.
    pub(crate) column: usize,
}

/// The queries of one task, in panels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tile {
    pub(crate) queries: Queries,
    /// Numbers per vector.
    pub(crate) lanes: usize,
}

impl Tile {
    /// Columns of all panels together.
    pub(crate) fn columns(&self) -> usize {
        self.queries.count.next_multiple_of(self.lanes)
    }

    /// Number of panels.
    pub(crate) fn count(&self) -> usize {
        self.queries.count.div_ceil(2 * self.lanes)
    }

    /// The `index`-th panel: two vectors wide; the last may be one vector wide.
    #[inline(always)]
    pub(crate) fn panel(&self, index: usize) -> Panel {
        let width = 2 * self.lanes;
        let column = index * width;
        let queries = Queries {
            first: self.queries.first + column,
            count: (self.queries.count - column).min(width),
            ..self.queries
        };
        Panel {
            queries,
            columns: queries.count.next_multiple_of(self.lanes),
            column,
        }
    }
}

/// Consecutive blocks of at most `size` keys that cover `keys`.
pub(crate) fn blocks(keys: Range<usize>, size: usize) -> impl Iterator<Item = Range<usize>> {
    let mut rest = keys;
    core::iter::from_fn(move || {
        let block = rest.start..(rest.start + size).min(rest.end);
        rest.start = block.end;
        (!block.is_empty()).then_some(block)
    })
}
