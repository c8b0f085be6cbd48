//! From dot products to scores: softcap, biases, what is hidden, and what is dropped.

use cubecl::prelude::*;

use crate::tile::{Four, Tile, UnitOf};

/// The least finite number: only −∞ is lower. It stands for a hidden score.
pub(crate) const LEAST: f32 = f32::MIN;

/// What the kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Config {
    pub(crate) tile: Tile,
    /// Tiles that cover a row of queries and keys, and one of values.
    pub(crate) parts_qk: usize,
    pub(crate) parts_v: usize,
    pub(crate) softcap: bool,
    pub(crate) dropout: bool,
}

/// Everything that changes scores, but for the dot products.
#[derive(CubeType, CubeLaunch)]
pub(crate) struct Scoring<M: Numeric> {
    /// `[batch, heads_q, len_q, len_kv]`, with strides of 0 where it is broadcast.
    pub(crate) bias: ComptimeOption<OwnedTensor<f32>>,
    pub(crate) distance_bias: ComptimeOption<OwnedTensor<f32>>,
    /// As `bias`; hides where not 0.
    pub(crate) masked: ComptimeOption<OwnedTensor<M>>,
    /// `[batch, heads_q, blocks of queries, blocks of keys]`, broadcast likewise; hides where 0.
    pub(crate) visible_blocks: ComptimeOption<OwnedTensor<M>>,
    pub(crate) key_lengths: ComptimeOption<OwnedTensor<i32>>,
    pub(crate) query_offsets: ComptimeOption<OwnedTensor<i32>>,
    pub(crate) query_segments: ComptimeOption<OwnedTensor<i32>>,
    pub(crate) key_segments: ComptimeOption<OwnedTensor<i32>>,
    /// Queries and keys of a block.
    pub(crate) block_queries: u32,
    pub(crate) block_keys: u32,
    pub(crate) scale: f32,
    pub(crate) softcap: f32,
    /// Position of the first query, if there are no query offsets.
    pub(crate) offset: i32,
    /// How many keys before and after its position a query sees.
    pub(crate) left: i32,
    pub(crate) right: i32,
    pub(crate) seed_low: u32,
    pub(crate) seed_high: u32,
    /// Weights whose 31 random bits are below this are dropped.
    pub(crate) threshold: u32,
    /// Factor on kept weights.
    pub(crate) kept: f32,
}

/// Where a tile is, and what its batch item hides.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct Place {
    pub(crate) batch: usize,
    pub(crate) head: usize,
    pub(crate) len_q: usize,
    pub(crate) len_kv: usize,
    /// Keys from here on are hidden.
    pub(crate) length: i32,
    /// Position of query 0.
    pub(crate) offset: i32,
}

#[cube]
pub(crate) fn place<M: Numeric>(
    scoring: &Scoring<M>,
    batch: usize,
    head: usize,
    len_q: usize,
    len_kv: usize,
) -> Place {
    let all = len_kv as i32;
    let mut length = all;
    #[comptime]
    match &scoring.key_lengths {
        ComptimeOption::Some(lengths) => {
            length = lengths[batch].max(0i32).min(all);
        }
        ComptimeOption::None => {}
    };
    let mut offset = scoring.offset;
    #[comptime]
    match &scoring.query_offsets {
        ComptimeOption::Some(offsets) => {
            offset = offsets[batch].max(-(len_q as i32)).min(all);
        }
        ComptimeOption::None => {}
    };
    Place {
        batch,
        head,
        len_q,
        len_kv,
        length,
        offset,
    }
}

/// A range of tiles.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct Tiles {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// The tiles of keys that some query of the tile from `query` on may see.
#[cube]
pub(crate) fn tiles_of_keys<M: Numeric>(
    scoring: &Scoring<M>,
    place: Place,
    query: usize,
    #[comptime] config: Config,
) -> Tiles {
    let size = comptime!(config.tile.size);
    let first = place.offset + query as i32;
    let last = place.offset + (query + size).min(place.len_q) as i32 - 1;
    let start = (first - scoring.left).max(0i32);
    let end = place.length.min((last + scoring.right + 1).max(0i32));
    Tiles {
        start: start as usize / size,
        end: (end as usize).div_ceil(size),
    }
}

/// The tiles of queries of which some may see a key of the tile from `key` on.
#[cube]
pub(crate) fn tiles_of_queries<M: Numeric>(
    scoring: &Scoring<M>,
    place: Place,
    key: usize,
    #[comptime] config: Config,
) -> Tiles {
    let size = comptime!(config.tile.size);
    let first = key as i32;
    let last = ((key + size) as i32).min(place.length) - 1;
    let start = (first - scoring.right - place.offset).max(0i32);
    let mut end = (place.len_q as i32).min((last + scoring.left - place.offset + 1).max(0i32));
    if first >= place.length {
        end = 0i32.runtime();
    }
    Tiles {
        start: start as usize / size,
        end: (end as usize).div_ceil(size),
    }
}

/// Whether position and lengths hide nothing in the tile at `query` and `key`, and nothing else can.
#[cube]
pub(crate) fn is_visible<M: Numeric>(
    scoring: &Scoring<M>,
    place: Place,
    query: usize,
    key: usize,
    #[comptime] config: Config,
) -> bool {
    let size = comptime!(config.tile.size);
    let mut visible = (key + size) as i32 <= place.length
        && query + size <= place.len_q
        && key as i32 >= place.offset + (query + size) as i32 - 1 - scoring.left
        && (key + size) as i32 - 1 <= place.offset + query as i32 + scoring.right;
    if comptime!(
        scoring.masked.is_some()
            || scoring.visible_blocks.is_some()
            || scoring.query_segments.is_some()
    ) {
        visible = false.runtime();
    }
    visible
}

/// Whether every column of a tile is seen by some row. A bias may hide what position and lengths leave visible.
#[cube]
pub(crate) fn all_seen<M: Numeric>(scoring: &Scoring<M>, visible: bool) -> bool {
    let mut all = visible;
    if comptime!(scoring.bias.is_some() || scoring.distance_bias.is_some()) {
        all = false.runtime();
    }
    all
}

/// Whether a query may not see a key.
#[cube]
fn is_hidden<M: Numeric>(scoring: &Scoring<M>, place: Place, query: usize, key: usize) -> bool {
    let position = place.offset + query as i32;
    let mut hidden = key as i32 >= place.length
        || query >= place.len_q
        || (key as i32) < position - scoring.left
        || key as i32 > position + scoring.right;
    // What is outside of the tensors must not be read.
    let query = query.min(place.len_q - 1);
    let key = key.min(place.len_kv - 1);
    #[comptime]
    match &scoring.query_segments {
        ComptimeOption::Some(queries) => {
            #[comptime]
            match &scoring.key_segments {
                ComptimeOption::Some(keys) => {
                    hidden = hidden
                        || queries[place.batch * place.len_q + query]
                            != keys[place.batch * place.len_kv + key];
                }
                ComptimeOption::None => {}
            };
        }
        ComptimeOption::None => {}
    };
    #[comptime]
    match &scoring.masked {
        ComptimeOption::Some(masked) => {
            let at = place.batch * masked.stride(0)
                + place.head * masked.stride(1)
                + query * masked.stride(2)
                + key * masked.stride(3);
            hidden = hidden || masked[at] != M::from_int(0i64);
        }
        ComptimeOption::None => {}
    };
    #[comptime]
    match &scoring.visible_blocks {
        ComptimeOption::Some(visible) => {
            let at = place.batch * visible.stride(0)
                + place.head * visible.stride(1)
                + query / scoring.block_queries as usize * visible.stride(2)
                + key / scoring.block_keys as usize * visible.stride(3);
            hidden = hidden || visible[at] == M::from_int(0i64);
        }
        ComptimeOption::None => {}
    };
    hidden
}

/// Turns the dot products of a unit into scores, [`LEAST`] where hidden, and returns which are hidden: for every group of four columns,
/// bit `row * 4 + column`.
///
/// `row` and `column` are the unit's first; with `across`, rows are keys and columns queries.
#[cube]
pub(crate) fn score<M: Numeric>(
    scores: &mut Array<Four>,
    slopes: &mut Array<Four>,
    scoring: &Scoring<M>,
    place: Place,
    row: usize,
    column: usize,
    visible: bool,
    #[comptime] across: bool,
    #[comptime] config: Config,
) -> Array<u32> {
    let tile = comptime!(config.tile);
    let rows = comptime!(tile.rows);
    let groups = comptime!(tile.groups());
    let mut bits = Array::<u32>::new(groups);
    #[unroll]
    for group in 0..groups {
        bits[group] = 0u32;
    }
    if comptime!(config.softcap) {
        #[unroll]
        for i in 0..comptime!(tile.held()) {
            let mut capped = scores[i];
            let mut slope = Four::new(0.0f32);
            #[unroll]
            for j in 0..4usize {
                // Beyond ±15 it is ±1 in f32, where some drivers overflow.
                let ratio = capped.extract(j) / scoring.softcap;
                let high = ratio > f32::new(15.0);
                let low = ratio < f32::new(-15.0);
                let ratio = select(high, f32::new(15.0), select(low, f32::new(-15.0), ratio));
                let bent = ratio.tanh();
                capped.insert(j, scoring.softcap * bent);
                slope.insert(j, f32::new(1.0) - bent * bent);
            }
            scores[i] = capped;
            slopes[i] = slope;
        }
    }
    #[comptime]
    match &scoring.bias {
        ComptimeOption::Some(bias) => {
            let base = place.batch * bias.stride(0) + place.head * bias.stride(1);
            #[unroll]
            for index in 0..comptime!(tile.held()) {
                let (i, group) = comptime!((index / groups, index % groups));
                let mut sum = scores[index];
                #[unroll]
                for j in 0..4usize {
                    let column = column + comptime!(tile.skip(group) + j);
                    let query = select(across, column, row + i).min(place.len_q - 1);
                    let key = select(across, row + i, column).min(place.len_kv - 1);
                    let at = base + query * bias.stride(2) + key * bias.stride(3);
                    // It hides, even what is NaN without it.
                    if bias[at] < f32::new(LEAST) {
                        bits[group] |= comptime!(1u32 << (i * 4 + j) as u32);
                    }
                    sum.insert(j, sum.extract(j) + bias[at]);
                }
                scores[index] = sum;
            }
        }
        ComptimeOption::None => {}
    };
    #[comptime]
    match &scoring.distance_bias {
        ComptimeOption::Some(bias) => {
            let entries = bias.shape(1);
            let mut zero = place.len_kv as i32 - 1;
            if comptime!(scoring.query_offsets.is_some()) {
                zero = place.offset + (place.len_q + place.len_kv) as i32 - 1;
            }
            #[unroll]
            for index in 0..comptime!(tile.held()) {
                let (i, group) = comptime!((index / groups, index % groups));
                let mut sum = scores[index];
                #[unroll]
                for j in 0..4usize {
                    let column = column + comptime!(tile.skip(group) + j);
                    let query = select(across, column, row + i).min(place.len_q - 1);
                    let key = select(across, row + i, column).min(place.len_kv - 1);
                    let at = place.head * entries + (query as i32 - key as i32 + zero) as usize;
                    // It hides, even what is NaN without it.
                    if bias[at] < f32::new(LEAST) {
                        bits[group] |= comptime!(1u32 << (i * 4 + j) as u32);
                    }
                    sum.insert(j, sum.extract(j) + bias[at]);
                }
                scores[index] = sum;
            }
        }
        ComptimeOption::None => {}
    };
    if !visible {
        // Not unrolled: it would be most of the program, which takes time to compile.
        for pair in 0..comptime!(rows * 4) {
            let (row, column) = (row + pair / 4, column + pair % 4);
            #[unroll]
            for group in 0..groups {
                let column = column + comptime!(tile.skip(group));
                let query = select(across, column, row);
                let key = select(across, row, column);
                if is_hidden::<M>(scoring, place, query, key) {
                    bits[group] |= 1u32 << pair as u32;
                }
            }
        }
    }
    #[unroll]
    for index in 0..comptime!(tile.held()) {
        let (i, group) = comptime!((index / groups, index % groups));
        let mut checked = scores[index];
        #[unroll]
        for j in 0..4usize {
            let bit = comptime!(1u32 << (i * 4 + j) as u32);
            let number = checked.extract(j);
            // Not in range, or hidden. NaN stays.
            if number < f32::new(LEAST) {
                bits[group] |= bit;
            }
            let number = select(number > f32::new(f32::MAX), f32::new(f32::MAX), number);
            let hidden = bits[group] & bit != 0;
            checked.insert(j, select(hidden, f32::new(LEAST), number));
        }
        scores[index] = checked;
    }
    bits
}

/// Marks the columns of the tile of which this unit sees a row. Needs a barrier before, and one after.
#[cube]
pub(crate) fn mark_seen(
    bits: &Array<u32>,
    seen: &mut Shared<[u32]>,
    unit: UnitOf,
    #[comptime] config: Config,
) {
    let tile = comptime!(config.tile);
    let all = comptime!((0..tile.rows).fold(0u32, |all, row| all | 1 << (row * 4)));
    #[unroll]
    for group in 0..comptime!(tile.groups()) {
        #[unroll]
        for j in 0..4usize {
            let column = comptime!(all << j as u32);
            if bits[group] & column != column {
                // Every unit that writes writes the same.
                seen[unit.x * 4 + comptime!(tile.skip(group) + j)] = 1u32;
            }
        }
    }
}
