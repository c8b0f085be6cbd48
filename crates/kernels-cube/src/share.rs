//! Which part of a tile's work a cube has: all of it, or one of the splits that [`split`](crate::split) makes.

use cubecl::prelude::*;

use crate::scoring::Config;

#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct Tiles {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// The part of a tile that a cube computes.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct Share {
    pub(crate) tile: usize,
    /// Number of the split, and how many there are.
    pub(crate) split: usize,
    pub(crate) splits: usize,
}

/// The share of this cube, in a grid of tiles times splits by heads.
#[cube]
pub(crate) fn share(tiles: usize, #[comptime] config: Config) -> Share {
    let cube = CUBE_POS_X as usize;
    let mut share = Share {
        tile: cube,
        split: 0usize.runtime(),
        splits: 1usize.runtime(),
    };
    if comptime!(config.split) {
        share.splits = CUBE_COUNT_X as usize / tiles;
        share.tile = cube / share.splits;
        share.split = cube % share.splits;
    }
    share
}

/// The batch item of a cube's results, which in a split are `[splits · batches, …]`.
#[cube]
pub(crate) fn batch_of_results(
    share: Share,
    batch: usize,
    batches: usize,
    #[comptime] config: Config,
) -> usize {
    let mut to = batch;
    if comptime!(config.split) {
        to = share.split * batches + batch;
    }
    to
}

/// A cube's share of the tiles of a `member`, where all `members` have the range `tiles`.
#[cube]
pub(crate) fn shared(
    tiles: Tiles,
    share: Share,
    member: usize,
    members: usize,
    #[comptime] config: Config,
) -> Tiles {
    let (mut start, mut end) = (tiles.start, tiles.end);
    if comptime!(config.split) {
        let count = tiles.end.max(tiles.start) - tiles.start;
        let of_split = (members * count).div_ceil(share.splits);
        let before = member * count;
        let first = (share.split * of_split).max(before) - before;
        let last = ((share.split + 1) * of_split).max(before) - before;
        start = tiles.start + first.min(count);
        end = tiles.start + last.min(count);
    }
    Tiles { start, end }
}
