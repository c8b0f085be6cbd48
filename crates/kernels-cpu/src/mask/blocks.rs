//! Visibility by blocks of queries and keys.

use core::ops::Range;

use serde::{Deserialize, Serialize};

use crate::Broadcast;

/// How many neighbouring queries and keys share one entry of a block table.
///
/// ```
/// use burn_attn_kernels_cpu::BlockSize;
///
/// assert_eq!(BlockSize::from(64), BlockSize { queries: 64, keys: 64 });
/// assert_eq!(BlockSize::from([32, 64]).table(100, 128), [4, 2]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BlockSize {
    /// Queries per block, in tokens.
    pub queries: usize,
    /// Keys per block, in tokens.
    pub keys: usize,
}

impl BlockSize {
    /// Rows and columns of the table for these numbers of queries and keys; the last block of each may be shorter.
    ///
    /// # Panics
    /// A size is zero.
    #[must_use]
    pub fn table(self, len_q: usize, len_kv: usize) -> [usize; 2] {
        [len_q.div_ceil(self.queries), len_kv.div_ceil(self.keys)]
    }
}

impl From<usize> for BlockSize {
    /// As many queries as keys.
    fn from(tokens: usize) -> Self {
        Self {
            queries: tokens,
            keys: tokens,
        }
    }
}

impl From<[usize; 2]> for BlockSize {
    /// Queries, then keys.
    fn from([queries, keys]: [usize; 2]) -> Self {
        Self { queries, keys }
    }
}

/// A table that says for each block of queries and keys whether it is visible: block-sparse attention.
///
/// Query `i` sees key `j` only if entry `(i / size.queries, j / size.keys)` is `true`. Blocks are counted from the first
/// query and the first key, whatever the causal alignment.
///
/// ```text
/// table  # .     size 2 x 3, len_q 3, len_kv 5:    # # # . .
///        . #                                       # # # . .
///                                                  . . . # #
/// ```
///
/// # Shapes
/// `[batch or 1, heads_q or 1, ⌈len_q / size.queries⌉ or 1, ⌈len_kv / size.keys⌉ or 1]`
///
/// # Cost
/// Time in proportion to what is visible to any query of a panel of up to 32, if blocks have 32 keys or more; the table is never expanded.
///
/// # Source
/// Child et al., *Generating Long Sequences with Sparse Transformers* (2019), section 5.5; Zaheer et al., *Big Bird* (2020),
/// appendix D. PyTorch: the `BlockMask` of `torch.nn.attention.flex_attention`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Blocks<'a> {
    /// The table: shows where `true`.
    pub visible: Broadcast<'a, bool>,
    /// The queries and keys that one entry covers.
    pub size: BlockSize,
}

impl Blocks<'_> {
    /// Whether the table shows a key to a query of a query head.
    ///
    /// # Panics
    /// An index is out of range, or a block is empty.
    #[must_use]
    pub fn shows(&self, batch_item: usize, head: usize, query: usize, key: usize) -> bool {
        let (row, column) = (query / self.size.queries, key / self.size.keys);
        self.visible.get(batch_item, head, row, column)
    }

    /// The rows of the table that contain any of these queries.
    pub(crate) fn rows(&self, queries: &Range<usize>) -> Range<usize> {
        queries.start / self.size.queries..queries.end.div_ceil(self.size.queries)
    }

    /// The columns of the table that contain any of these keys.
    pub(crate) fn columns(&self, keys: &Range<usize>) -> Range<usize> {
        keys.start / self.size.keys..keys.end.div_ceil(self.size.keys)
    }
}

/// The part of `tokens` in a row or a column of the table, counted from the first token.
pub(crate) fn within(tokens: &Range<usize>, index: usize, size: usize) -> Range<usize> {
    let first = (index * size).max(tokens.start);
    let end = (index * size).saturating_add(size).min(tokens.end);
    first - tokens.start..end - tokens.start
}
