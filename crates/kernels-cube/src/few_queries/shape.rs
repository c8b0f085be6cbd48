//! How many heads, keys and units a cube has.

use core::num::NonZero;

use crate::tile::Tile;

/// The most queries of a cube, over all its heads. Heads with more queries take the kernels that have tiles of them.
pub(crate) const MOST_ROWS: usize = 4;

/// Keys of a cube.
pub(crate) const KEYS: usize = 256;

/// Units of a cube, each of which has the scores of four keys.
pub(crate) const UNITS: usize = KEYS / 4;

/// Units that share a key in the dot products, so that neighbouring units read neighbouring numbers.
pub(crate) const LANES: usize = 4;

/// The scores of a cube: a unit has all queries of `heads` heads by four keys.
pub(crate) fn tile(heads: usize, len_q: usize) -> Tile {
    Tile {
        height: KEYS,
        size: KEYS,
        rows: heads * len_q,
        columns: 4,
        ahead: false,
    }
}

/// Numbers in shared memory: first the dot products of every lane. Later, `KEYS` weights per row and the sums of all groups of units: at
/// most 256 numbers per row if a head has at most 256.
pub(crate) fn pool(rows: usize) -> usize {
    rows * KEYS * LANES
}

/// How many of the `group` heads that share keys a cube with `bytes` of shared memory computes, if one fits: the heads, spread evenly over
/// the fewest cubes.
pub(crate) fn heads_of_cube(group: usize, len_q: usize, bytes: usize) -> Option<usize> {
    let most = (bytes / (4 * pool(1))).min(MOST_ROWS) / len_q;
    let cubes = group.div_ceil(NonZero::new(most)?.get());
    Some(group.div_ceil(cubes))
}
