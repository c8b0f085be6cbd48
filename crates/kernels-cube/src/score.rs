//! From dot products to scores: softcap, biases, and what is hidden.

use cubecl::prelude::*;

use crate::{
    tile::{Four, Tile, UnitOf},
    visible::{Place, head_of_row, is_hidden, query_of_row},
};

/// The least finite number: only −∞ is lower. It stands for a hidden score.
pub(crate) const LEAST: f32 = f32::MIN;

/// What the kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Config {
    pub(crate) tile: Tile,
    /// Tiles that cover a row of queries and keys, and one of values.
    pub(crate) parts_qk: usize,
    pub(crate) parts_v: usize,
    /// Rows of a unit per head. Fewer than `rows` only in [`few_queries`](crate::few_queries), where the rest belong to the next heads.
    pub(crate) queries: usize,
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
    pub(crate) segments: ComptimeOption<OwnedTensor<i32>>,
    /// `[batch, heads_q, tiles of queries, tiles of keys]`, broadcast likewise: what segments, mask and table do in each tile.
    pub(crate) tile_kinds: ComptimeOption<OwnedTensor<u32>>,
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
    /// Factor on weights that are kept.
    pub(crate) keep_scale: f32,
}

/// The hyperbolic tangent with a small relative error on every driver.
#[cube]
fn accurate_tanh(x: f32) -> f32 {
    // Beyond ±15 it is ±1 in f32, where some drivers overflow.
    let high = x > f32::new(15.0);
    let low = x < f32::new(-15.0);
    let bounded = select(high, f32::new(15.0), select(low, f32::new(-15.0), x));
    // Near 0, the error of a driver may be relative to 1 instead of x. That of Taylor's series is 5e-8 x.
    let square = bounded * bounded;
    let of_square = f32::new(2.0 / 15.0) * square - f32::new(1.0 / 3.0);
    let series = bounded * (f32::new(1.0) + square * of_square);
    select(square < f32::new(0.01), series, bounded.tanh())
}

/// Turns the dot products of a unit into scores, [`LEAST`] where hidden, and returns which are hidden: for every group of four columns,
/// bit `row * 4 + column`.
///
/// `row` and `column` are the unit's first; with `keys_in_rows`, rows are keys and columns queries.
#[cube]
pub(crate) fn score<M: Numeric>(
    scores: &mut Array<Four>,
    dsoftcap: &mut Array<Four>,
    scoring: &Scoring<M>,
    place: Place,
    row: usize,
    column: usize,
    visible: bool,
    #[comptime] keys_in_rows: bool,
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
        for i in 0..comptime!(tile.vectors_per_unit()) {
            let mut capped = scores[i];
            let mut derivative = Four::new(0.0f32);
            #[unroll]
            for j in 0..4usize {
                let number = capped.extract(j);
                let ratio = number / scoring.softcap;
                let tanh = accurate_tanh(ratio);
                // A score far below the softcap is itself, without the rounding of the ratio.
                let is_small = ratio.abs() < f32::new(1e-4);
                capped.insert(j, select(is_small, number, scoring.softcap * tanh));
                derivative.insert(j, f32::new(1.0) - tanh * tanh);
            }
            scores[i] = capped;
            dsoftcap[i] = derivative;
        }
    }
    #[comptime]
    match &scoring.bias {
        ComptimeOption::Some(bias) => {
            let base = place.batch * bias.stride(0);
            #[unroll]
            for index in 0..comptime!(tile.vectors_per_unit()) {
                let (i, group) = comptime!((index / groups, index % groups));
                let base = base + head_of_row(place, i, config) * bias.stride(1);
                let row_query = row + query_of_row(i, config);
                let mut sum = scores[index];
                #[unroll]
                for j in 0..4usize {
                    let column = column + comptime!(tile.skip(group) + j);
                    let query = select(keys_in_rows, column, row_query).min(place.len_q - 1);
                    let key = select(keys_in_rows, row + i, column).min(place.len_kv - 1);
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
            for index in 0..comptime!(tile.vectors_per_unit()) {
                let (i, group) = comptime!((index / groups, index % groups));
                let base = head_of_row(place, i, config) * entries;
                let row_query = row + query_of_row(i, config);
                let mut sum = scores[index];
                #[unroll]
                for j in 0..4usize {
                    let column = column + comptime!(tile.skip(group) + j);
                    let query = select(keys_in_rows, column, row_query).min(place.len_q - 1);
                    let key = select(keys_in_rows, row + i, column).min(place.len_kv - 1);
                    let at = base + (query as i32 - key as i32 + zero) as usize;
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
            let (i, column) = (pair / 4, column + pair % 4);
            let head = head_of_row(place, i, config);
            let row_query = row + query_of_row(i, config);
            #[unroll]
            for group in 0..groups {
                let column = column + comptime!(tile.skip(group));
                let query = select(keys_in_rows, column, row_query);
                let key = select(keys_in_rows, row + i, column);
                if is_hidden::<M>(scoring, place, head, query, key) {
                    bits[group] |= 1u32 << pair as u32;
                }
            }
        }
    }
    #[unroll]
    for index in 0..comptime!(tile.vectors_per_unit()) {
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
