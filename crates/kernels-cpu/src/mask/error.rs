//! Why a mask cannot be used.

use super::blocks::BlockSize;
use crate::BroadcastError;
use thiserror::Error;

/// Why a [`Mask`](super::Mask) does not fit a [`Problem`](crate::Problem).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MaskError {
    /// A per-token or per-item buffer has the wrong length.
    #[error("{name} needs {expected} elements, but has {actual}")]
    Length {
        /// The part of the mask.
        name: &'static str,
        /// What the problem asks for.
        expected: usize,
        /// The length of the buffer.
        actual: usize,
    },
    /// The key length of a batch item, or the number of its first keys, is more than the number of keys.
    #[error("{name} of batch item {batch_item} is {length}, but len_kv is {len_kv}")]
    KeyLength {
        /// The part of the mask.
        name: &'static str,
        /// Index of the batch item.
        batch_item: usize,
        /// The number, in tokens.
        length: usize,
        /// The number of keys of the problem.
        len_kv: usize,
    },
    /// The queries of a batch item are too far from the keys.
    #[error(
        "the query offset of batch item {batch_item} is {offset}, but must lie between -len_q = -{len_q} and len_kv = {len_kv}"
    )]
    QueryOffset {
        /// Index of the batch item.
        batch_item: usize,
        /// Its query offset, in tokens.
        offset: i64,
        /// The number of queries of the problem.
        len_q: usize,
        /// The number of keys of the problem.
        len_kv: usize,
    },
    /// A block of a table has no queries or no keys.
    #[error(
        "a block needs at least 1 query and 1 key, but has {} and {}",
        .size.queries, .size.keys
    )]
    BlockSize {
        /// The size that was given.
        size: BlockSize,
    },
    /// The table of blocks does not broadcast to the blocks of the scores.
    #[error(
        "a table of shape {shape:?} does not broadcast to {table:?}, the [batch, heads_q, rows, columns] of blocks of {} queries and {} keys",
        .size.queries, .size.keys
    )]
    Blocks {
        /// The shape that was given.
        shape: [usize; 4],
        /// The shape of a table that repeats nothing.
        table: [usize; 4],
        /// The block size that was given.
        size: BlockSize,
    },
    /// The bool tensor does not broadcast to the scores.
    #[error("the bool mask does not fit: {0}")]
    Masked(#[from] BroadcastError),
}
