//! How many heads, keys and units a cube has.

use core::num::NonZero;

use crate::tile::Tile;

/// Queries of a cube, over all of its heads. Heads with more are for [`forward`](crate::forward::forward).
pub(crate) const MOST_ROWS: usize = 4;

/// Keys of a cube.
pub(crate) const KEYS: usize = 256;

/// Units of a cube, each of which has the scores of four keys.
pub(crate) const UNITS: usize = KEYS / 4;

/// Units that share a key in the dot products, so that neighbours read neighbouring numbers.
pub(crate) const LANES: usize = 4;

/// The scores of a cube: those of a unit are `heads` times all queries by four keys.
pub(crate) fn tile(heads: usize, len_q: usize) -> Tile {
    Tile {
        height: KEYS,
        size: KEYS,
        rows: heads * len_q,
        columns: 4,
    }
}

/// Numbers of shared memory: the dot products of every lane, and later the weights and up to 256 numbers per row of sums, of which
/// heads of at most 256 numbers have no more.
pub(crate) fn pool(rows: usize) -> usize {
    rows * KEYS * LANES
}

/// How many of `group` heads that share keys a cube with so many bytes of shared memory computes, if any: as many as fit, but no more
/// than cubes of equal work need.
pub(crate) fn heads_of_cube(group: usize, len_q: usize, bytes: usize) -> Option<usize> {
    let most = (bytes / (4 * pool(1))).min(MOST_ROWS) / len_q;
    let cubes = group.div_ceil(NonZero::new(most)?.get());
    Some(group.div_ceil(cubes))
}
