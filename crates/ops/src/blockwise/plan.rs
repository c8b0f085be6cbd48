//! How the scores of a call are cut into blocks.

use core::ops::Range;

use crate::composed::part::{Part, Reach};

/// The sizes that decide how many scores are held at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Batch items times query heads.
    pub(super) rows_of_heads: usize,
    pub(super) len_q: usize,
    pub(super) len_kv: usize,
    /// The wider of query and value heads.
    pub(super) dim: usize,
    /// What causal mask and window show.
    pub(super) reach: Reach,
    /// Scores of a block of one head, if somebody else decides.
    pub(super) block_area: Option<usize>,
}

/// Blocks of queries and keys, as equal as can be.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plan {
    len_q: usize,
    len_kv: usize,
    /// Queries of a block.
    rows: usize,
    /// Keys of a block.
    columns: usize,
    reach: Reach,
}

impl Plan {
    /// For the forward pass: rows of all keys, whose softmax needs no other block.
    pub(super) fn forward(sizes: Sizes) -> Self {
        let rows = (sizes.area() / sizes.len_kv).max(1);
        Self::of(sizes, rows, sizes.len_kv)
    }

    /// For the backward pass: squares, which have the fewest gradients to add up.
    pub(super) fn backward(sizes: Sizes) -> Self {
        let area = sizes.area();
        // What one side does not use, the other may.
        let rows = area.isqrt().max(area / sizes.len_kv).min(sizes.len_q);
        Self::of(sizes, rows, area / rows)
    }

    fn of(sizes: Sizes, rows: usize, columns: usize) -> Self {
        let Sizes {
            len_q,
            len_kv,
            reach,
            ..
        } = sizes;
        Self {
            len_q,
            len_kv,
            rows,
            columns,
            reach,
        }
    }

    /// Whether one block is everything.
    pub(super) fn is_whole(&self) -> bool {
        self.rows >= self.len_q && self.columns >= self.len_kv
    }

    /// The blocks of queries.
    pub(super) fn queries(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        cut(0..self.len_q, self.rows)
    }

    /// The blocks of keys.
    pub(super) fn keys(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        cut(0..self.len_kv, self.columns)
    }

    /// The keys that some of the queries may see.
    pub(super) fn keys_of(&self, queries: &Range<usize>) -> Range<usize> {
        self.reach.keys(queries, self.len_kv)
    }

    /// Whether some of the queries may see some of the keys.
    pub(super) fn meet(&self, queries: &Range<usize>, keys: &Range<usize>) -> bool {
        let seen = self.keys_of(queries);
        seen.start < keys.end && keys.start < seen.end
    }

    pub(super) fn part(&self, queries: &Range<usize>, keys: &Range<usize>) -> Part {
        Part {
            queries: queries.clone(),
            keys: keys.clone(),
            len_q: self.len_q,
            len_kv: self.len_kv,
        }
    }
}

impl Sizes {
    /// How many scores a block of one head has.
    ///
    /// As many as query and key have numbers, so that memory stays linear in the lengths, and the number of blocks does not
    /// depend on batch and heads; a small call takes more, because a block has its fixed cost.
    fn area(&self) -> usize {
        /// Scores of all heads that every device can hold (4 MiB).
        const FEWEST_SCORES: usize = 1 << 20;
        /// Rows that a block of all keys has at least: a matrix product of fewer is slow on every backend.
        const FEWEST_ROWS: usize = 64;
        let linear = (self.len_q + self.len_kv) * self.dim.max(FEWEST_ROWS);
        let area = linear.max(FEWEST_SCORES / self.rows_of_heads);
        self.block_area.unwrap_or(area).max(1)
    }
}

/// A range in as few blocks of about `size` as it takes, none much shorter than another.
///
/// Long ones are a multiple of 32 tokens, but for the last: rows of scores then begin where vectors may be read.
fn cut(range: Range<usize>, size: usize) -> impl Iterator<Item = Range<usize>> {
    const STEP: usize = 32;
    let Range { start, end } = range;
    let count = (end - start).div_ceil(size).max(1);
    let even = (end - start).div_ceil(count).max(1);
    let size = if even >= 2 * STEP {
        even.next_multiple_of(STEP)
    } else {
        even
    };
    (start..end)
        .step_by(size)
        .map(move |first| first..end.min(first + size))
}
