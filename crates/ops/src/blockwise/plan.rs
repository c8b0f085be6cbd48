//! How the scores of a call are cut into blocks.

use core::ops::Range;

use crate::composed::{part::Part, position::Reach};

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
    len_q: usize,
    len_kv: usize,
    /// Queries of a block.
    rows: usize,
    /// Keys of a block.
    columns: usize,
    reach: Reach,
}

impl Plan {
    /// For the forward pass: rows with all keys that they may see, whose softmax needs no other block.
    pub(super) fn forward(sizes: Sizes) -> Self {
        let area = sizes.area();
        let of_all_keys = (area / sizes.len_kv).max(1);
        let Some(width) = sizes.reach.width() else {
            return Self::of(sizes, of_all_keys, sizes.len_kv);
        };
        // `rows` queries see `rows + width` keys, if there are that many.
        let longest = longest_block(width);
        let rows = longest.min(area / (longest + width)).max(of_all_keys);
        Self::of(sizes, rows, sizes.len_kv.min(rows + width))
    }

    /// For the backward pass: squares, which leave the fewest gradients to add up.
    pub(super) fn backward(sizes: Sizes) -> Self {
        let area = sizes.area();
        if let Some(width) = sizes.reach.width() {
            let side = area.isqrt().min(longest_block(width));
            return Self::of(sizes, side, side);
        }
        // Each side may use what the other leaves.
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

    /// The keys that at least one of the queries may see.
    pub(super) fn keys_of(&self, queries: &Range<usize>) -> Range<usize> {
        self.reach.keys(queries, self.len_kv)
    }

    /// Whether any of the queries may see any of the keys.
    pub(super) fn may_see(&self, queries: &Range<usize>, keys: &Range<usize>) -> bool {
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
    let size = if even >= 2 * STEP && (rest == 0 || rest >= STEP) {
        round
    } else {
        even
    };
    (start..end)
        .step_by(size)
        .map(move |first| first..end.min(first + size))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(len_q: usize, len_kv: usize, reach: [Option<i64>; 2]) -> Sizes {
        Sizes {
            rows_of_heads: 2,
            len_q,
            len_kv,
            dim: 64,
            reach: Reach {
                first: Some(len_kv as i64 - len_q as i64),
                left: reach[0],
                right: reach[1],
            },
            block_area: Some(1 << 14),
        }
    }

    #[test]
    fn blocks_are_all_queries_and_no_larger_than_they_may() {
        for (len_q, len_kv) in [
            (1, 1),
            (1, 100_003),
            (1009, 100_003),
            (4096, 4096),
            (5003, 7),
        ] {
            for reach in [
                [None, None],
                [None, Some(0)],
                [Some(10), Some(0)],
                [Some(1000), Some(1000)],
                [Some(200_000), Some(0)],
            ] {
                let sizes = sizes(len_q, len_kv, reach);
                for plan in [Plan::forward(sizes), Plan::backward(sizes)] {
                    let queries: Vec<_> = plan.queries().collect();
                    let counted: usize = queries.iter().map(Range::len).sum();
                    assert_eq!(counted, len_q);
                    assert!(queries.windows(2).all(|pair| pair[0].end == pair[1].start));
                    if plan.is_whole() {
                        assert!(len_q * len_kv <= sizes.area().max(len_kv), "{sizes:?}");
                    }
                }
                for queries in Plan::forward(sizes).queries() {
                    let scores = queries.len() * Plan::forward(sizes).keys_of(&queries).len();
                    // A single query may see all keys, and 64 queries or more are rounded up to the next 32.
                    let most = len_kv.max(sizes.area() * 9 / 4);
                    assert!(scores <= most, "{queries:?} of {sizes:?}");
                }
            }
        }
    }

    #[test]
    fn no_block_is_much_shorter_than_the_others() {
        let lengths: Vec<_> = cut(0..193, 65).map(|block| block.len()).collect();
        assert_eq!(lengths, [65, 65, 63]);
        let lengths: Vec<_> = cut(0..1000, 100).map(|block| block.len()).collect();
        assert_eq!(lengths, [128, 128, 128, 128, 128, 128, 128, 104]);
    }

    #[test]
    fn a_window_makes_blocks_of_more_queries() {
        let count = |reach| Plan::forward(sizes(4096, 4096, reach)).queries().count();
        // 4 queries see 4096 keys; 61 see 71.
        assert_eq!(count([None, None]), 1024);
        assert_eq!(count([Some(10), Some(0)]), 68);
    }
}
