//! What must not spread, and what must not get lost: NaN, infinity and huge numbers in places that are hidden or seen.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `poison.rs` | one poison: a problem, what is put where, and how far it may get |
//! | `unseen.rs` | poisons that no query sees |
//! | `seen.rs` | poisons that some query sees |
//!
//! Plain data, so that every implementation of the contract can be held to the same list: the suite of the kernels includes
//! this folder, and so does that of the Burn operation, by `#[path]`. It needs nothing but this crate's public types.
//!
//! For each [`Poison`] a suite fills its tensors with ordinary numbers, computes, puts the [`Put`](poison::Put)s in, computes again, and
//! asks [`Reaches::violation`] about every result and gradient, with what the oracle says of the poisoned tensors.

mod poison;
mod seen;
mod unseen;

pub use poison::{Operand, Poison, Reaches};
use seen::{seen, seen_by_one};
use unseen::{hidden_keys, hidden_rows, keys_hidden_from_a_group};

/// Grouped heads and several batch items in less than one tile.
const SHORT: [usize; 7] = [2, 6, 2, 7, 23, 5, 11];
/// Two tiles of queries and several blocks of keys.
const TILES: [usize; 7] = [1, 2, 1, 131, 211, 5, 7];
const ONE_QUERY: [usize; 7] = [2, 6, 2, 1, 19, 5, 11];
/// Keys of several tasks.
const ONE_QUERY_LONG: [usize; 7] = [1, 4, 2, 1, 1097, 3, 17];
/// More queries than keys.
const TALL: [usize; 7] = [2, 3, 3, 29, 13, 5, 7];
const TALL_TILES: [usize; 7] = [1, 2, 1, 211, 199, 3, 5];

/// The whole list.
pub fn poisons() -> Vec<Poison> {
    let mut all = Vec::new();
    for (name, sizes) in [
        ("short", SHORT),
        ("several tiles", TILES),
        ("one query", ONE_QUERY),
        ("one query, many keys", ONE_QUERY_LONG),
    ] {
        all.extend(hidden_keys(name, sizes));
        all.extend(keys_hidden_from_a_group(name, sizes));
        all.extend(seen(name, sizes));
        all.extend(seen_by_one(name, sizes));
    }
    for (name, sizes) in [
        ("more queries than keys", TALL),
        ("several tiles, more queries than keys", TALL_TILES),
        ("short", SHORT),
        ("one query", ONE_QUERY),
    ] {
        all.extend(hidden_rows(name, sizes));
    }
    all
}
