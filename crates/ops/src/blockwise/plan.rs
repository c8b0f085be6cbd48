//! How the scores of a call are cut into blocks.

#[cfg(test)]
mod tests;

use core::ops::Range;
use std::sync::Arc;

use crate::{
    composed::{part::Part, position::Reach},
    function::BlockTable,
};

/// The sizes that decide how many scores exist at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Batch items times query heads.
    pub(super) rows_of_heads: usize,
    pub(super) len_q: usize,
    pub(super) len_kv: usize,
    /// The wider of query and value heads.
    pub(super) dim: usize,
    /// What the causal mask and the window show.
    pub(super) reach: Reach,
    /// Scores per block and head, if the caller decides.
    pub(super) block_area: Option<usize>,
}

/// Blocks of queries and keys, as equal in size as possible.
pub(super) struct Plan {
    sizes: Sizes,
    /// What mask functions show: blocks that they hide are left out.
    tables: Vec<Arc<BlockTable>>,
    /// Queries of a block.
    rows: usize,
    /// Keys of a block.
    columns: usize,
}

impl Plan {
    /// For the forward pass: rows with all keys that they may see, whose softmax needs no other block.
    pub(super) fn forward(sizes: Sizes, tables: &[Arc<BlockTable>]) -> Self {
        let area = sizes.area();
        let of_all_keys = (area / sizes.len_kv).max(1);
        let (rows, columns) = match sizes.reach.width() {
            // `rows` queries see `rows + width` keys, if there are that many.
            Some(width) => {
                let longest = longest_block(width);
                let rows = longest.min(area / (longest + width)).max(of_all_keys);
                (rows, sizes.len_kv.min(rows + width))
            }
            None => (of_all_keys, sizes.len_kv),
        };
        Self {
            sizes,
            tables: tables.to_vec(),
            rows,
            columns,
        }
    }

    /// For the backward pass: squares, which leave the fewest gradients to add up.
    pub(super) fn backward(sizes: Sizes, tables: &[Arc<BlockTable>]) -> Self {
        let area = sizes.area();
        let (rows, columns) = match sizes.reach.width() {
            Some(width) => [area.isqrt().min(longest_block(width)); 2].into(),
            // Each side may use what the other leaves.
            None => {
                let rows = area.isqrt().max(area / sizes.len_kv).min(sizes.len_q);
                (rows, area / rows)
            }
        };
        Self {
            sizes,
            tables: tables.to_vec(),
            rows,
            columns,
        }
    }

    pub(super) fn is_whole(&self) -> bool {
        self.rows >= self.sizes.len_q && self.columns >= self.sizes.len_kv
    }

    pub(super) fn queries(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        cut(0..self.sizes.len_q, self.rows)
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        cut(0..self.sizes.len_kv, self.columns)
    }

    /// The keys that at least one of the queries may see.
    pub(super) fn keys_of(&self, queries: &Range<usize>) -> Range<usize> {
        let keys = self.sizes.reach.keys(queries, self.sizes.len_kv);
        let tables = self.tables.iter();
        tables.fold(keys, |keys, table| table.keys_of(queries, keys))
    }

    pub(super) fn may_see(&self, queries: &Range<usize>, keys: &Range<usize>) -> bool {
        let seen = self.sizes.reach.keys(queries, self.sizes.len_kv);
        let mut tables = self.tables.iter();
        seen.start < keys.end
            && keys.start < seen.end
            && tables.all(|table| table.shows_any(queries, keys))
    }

    pub(super) fn part(&self, queries: &Range<usize>, keys: &Range<usize>) -> Part {
        Part {
            queries: queries.clone(),
            keys: keys.clone(),
            ..Part::whole(self.sizes.len_q, self.sizes.len_kv)
        }
    }
}

impl Sizes {
    /// About how many scores a block has per head.
    ///
    /// As many as query and key have numbers, so that memory stays linear in the lengths and the number of blocks does not
    /// depend on batch and heads; more in a small call, because every block has a fixed cost.
    fn area(&self) -> usize {
        /// Scores of all heads that every device can hold (4 MiB). With twice as many, two blocks take 1.03 times as long as
        /// one on flex, and 1.04 times on Mesa's software driver.
        const FEWEST_SCORES: usize = 1 << 20;
        /// About the least number of rows in a block of all keys: a matrix product with fewer is slow on every backend.
        const FEWEST_ROWS: usize = 64;
        let linear = (self.len_q + self.len_kv) * self.dim.max(FEWEST_ROWS);
        let area = linear.max(FEWEST_SCORES / self.rows_of_heads);
        self.block_area.unwrap_or(area).max(1)
    }
}

/// The most queries, or keys, of a block in which a query sees `width` keys besides the key at its position: roughly `width`.
/// In longer blocks the window hides more of the scores; in much shorter blocks launches cost more than scores.
fn longest_block(width: usize) -> usize {
    const FEWEST_TOKENS: usize = 256;
    width.max(FEWEST_TOKENS)
}

/// A range in as few blocks of about `size` as possible, none much shorter than another.
///
/// Long blocks are a multiple of 32 tokens where that leaves no short remainder, so that rows of scores are aligned for
/// vector reads.
fn cut(range: Range<usize>, size: usize) -> impl Iterator<Item = Range<usize>> {
    const STEP: usize = 32;
    let Range { start, end } = range;
    let count = (end - start).div_ceil(size).max(1);
    let even = (end - start).div_ceil(count).max(1);
    let round = even.next_multiple_of(STEP);
    let rest = (end - start) % round;
    let size = match even >= 2 * STEP && (rest == 0 || rest >= STEP) {
        true => round,
        false => even,
    };
    (start..end)
        .step_by(size)
        .map(move |first| first..end.min(first + size))
}
