//! Sizes that lead through every loop of the kernels.
//!
//! A task has 128 queries, a block 192 keys forward and 128 backward, a panel two vectors of queries; fewer than eight batch items and key/value
//! heads share their tiles out among several tasks, whose sums are added up at the end.

/// A name, and batch, heads_q, heads_kv, len_q, len_kv, dim_qk, dim_v.
pub type Path = (&'static str, [usize; 7]);

pub const ONE_QUERY: Path = ("one query", [3, 3, 3, 1, 37, 5, 3]);
pub const ONE_QUERY_GROUPED: Path = ("one query, grouped heads", [2, 6, 2, 1, 19, 3, 5]);
pub const ONE_QUERY_MANY_KEYS: Path = ("one query, many keys", [1, 3, 1, 1, 397, 3, 5]);
pub const ONE_QUERY_SPLIT: Path = ("one query, keys of several tasks", [1, 4, 2, 1, 1097, 2, 3]);
pub const SHORT: Path = ("short", [2, 5, 5, 7, 11, 3, 13]);
pub const TALL: Path = ("more queries than keys", [2, 3, 3, 29, 13, 5, 7]);
pub const ONE_KEY: Path = ("one key", [2, 2, 1, 7, 1, 3, 2]);
pub const GROUPED: Path = ("grouped heads", [2, 6, 2, 17, 23, 5, 3]);
pub const MANY_HEADS: Path = ("a task for each head", [4, 4, 2, 35, 23, 5, 3]);
pub const SPLIT: Path = ("one head among several tasks", [1, 3, 1, 263, 31, 3, 2]);
pub const TILES: Path = ("several tiles and blocks", [1, 2, 2, 131, 277, 3, 2]);
pub const TALL_TILES: Path = (
    "several tiles, more queries than keys",
    [1, 2, 1, 139, 131, 2, 3],
);
