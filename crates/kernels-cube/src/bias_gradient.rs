//! The gradients of the dense bias and of the distance bias.
//!
//! A cube has a part of the bias. It adds up the score gradients of the tiles that the part was added to, or of a [`share`](crate::share) of
//! them, in a fixed order. The dense bias has one tile per batch item and head that share the part, and more tiles where it is broadcast over
//! queries or keys. The distance bias has one diagonal of tiles of one batch item and head; a second kernel adds up its batch items.

use burn_attn_kernels_cpu::Problem;
use cubecl::{ir::ElemType, prelude::*};

use crate::{
    Operand,
    dropout::dropped,
    operands::dims,
    products::store_scores,
    score::{scored, sum_of},
    scoring::{Config, Scoring},
    share::{Share, Tiles, shared},
    tile::{Four, side, unit, zeros},
    visible::{clamped, has_visible, pairs, place, tiles_of_keys},
    weights::{DELTA, LOGSUMEXP, load_statistics, score_gradients, weights},
};

/// What a cube adds up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Sums {
    /// The tiles of a diagonal, along the diagonals in them.
    pub(crate) diagonal: bool,
    /// All batch items, heads, queries or keys.
    pub(crate) batches: bool,
    pub(crate) heads: bool,
    pub(crate) queries: bool,
    pub(crate) keys: bool,
}

impl Sums {
    /// The sums for a dense bias, from the bias or its gradient.
    pub(crate) fn of(bias: &Operand, problem: &Problem) -> Self {
        let [batch, heads, len_q, len_kv] = dims(bias);
        Self {
            diagonal: false,
            batches: batch < problem.batch,
            heads: heads < problem.heads_q,
            queries: len_q < problem.len_q,
            keys: len_kv < problem.len_kv,
        }
    }
}

/// `gradient` is row-major: a gradient of the bias's shape for each split, or `[batch, heads, diagonals of tiles, 2 * tile.size]`.
#[cube(launch_unchecked)]
pub(crate) fn bias_gradient<F: Float, M: Numeric, N: Size>(
    query: &Tensor<Vector<F, N>>,
    key: &Tensor<Vector<F, N>>,
    value: &Tensor<Vector<F, N>>,
    output_gradient: &Tensor<Vector<F, N>>,
    statistics: &Tensor<f32>,
    scoring: &Scoring<M>,
    gradient: &mut Tensor<f32>,
    tiles_of_head: u32,
    #[comptime] summed: Sums,
    #[comptime] config: Config,
    #[define(F, M)] _types: [ElemType; 2],
) {
    let tile = comptime!(config.tile);
    let size = comptime!(tile.size);
    let rows = comptime!(tile.rows);
    let vectors_per_unit = comptime!(tile.vectors_per_unit());
    let quads = comptime!(size / 4);
    let quads_of_chunk = comptime!(tile.chunk() / 4);
    let heads = query.shape(1);
    let group = heads / key.shape(1);
    let len_q = query.shape(2);
    let len_kv = key.shape(2);
    let tiles_q = len_q.div_ceil(size);
    let tiles_kv = len_kv.div_ceil(size);
    // Head, batch item and split of this cube. The grid is rounded up: extra cubes repeat the last head.
    let cube = CUBE_POS_Y * CUBE_COUNT_X + CUBE_POS_X;
    let own_heads = gradient.shape(1);
    let own_head = ((cube / tiles_of_head) as usize).min(gradient.shape(0) * own_heads - 1);
    let own_tile = (cube % tiles_of_head) as usize;
    let mut own_items = query.shape(0);
    if comptime!(summed.batches) {
        own_items = 1usize.runtime();
    }
    let own_item = own_head / own_heads;
    let share = Share {
        tile: own_tile,
        split: own_item / own_items,
        splits: gradient.shape(0) / own_items,
    };
    // First batch item and head that are added up, and their numbers.
    let (mut first_item, mut items) = (own_item % own_items, 1usize.runtime());
    if comptime!(summed.batches) {
        first_item = 0usize.runtime();
        items = query.shape(0);
    }
    let (mut first_head, mut members) = (own_head % own_heads, 1usize.runtime());
    if comptime!(summed.heads) {
        first_head = 0usize.runtime();
        members = heads;
    }
    // Tiles of queries, and for each the first tile of keys and their number.
    let (mut first_q, mut count_q) = (0usize.runtime(), tiles_q);
    let (mut first_kv, mut count_kv) = (0usize.runtime(), 1usize.runtime());
    if comptime!(summed.diagonal) {
        first_q = (own_tile + 1).max(tiles_kv) - tiles_kv;
        count_q = tiles_q.min(own_tile + 1) - first_q;
    } else {
        if comptime!(summed.keys) {
            count_kv = tiles_kv;
            if comptime!(!summed.queries) {
                first_q = own_tile;
                count_q = 1usize.runtime();
            }
        } else if comptime!(summed.queries) {
            first_kv = own_tile;
        } else {
            first_kv = own_tile % tiles_kv;
            first_q = own_tile / tiles_kv;
            count_q = 1usize.runtime();
        }
    }

    let one = f32::new(1.0);
    let mut unit = unit(tile);
    let mut sums = zeros(vectors_per_unit);
    let all = Tiles {
        start: 0usize.runtime(),
        end: items * members * count_q * count_kv,
    };
    let tiles = shared(all, share, 0usize, 1usize, config);
    for row in tiles.start / count_kv..tiles.end.div_ceil(count_kv) {
        let tile_q = first_q + row % count_q;
        let head = first_head + row / count_q % members;
        let batch = first_item + row / count_q / members;
        let place = place::<M>(scoring, batch, head, len_q, len_kv);
        let first = tile_q * size;
        let queries = side::<F, N>(query, batch, head, first, scoring.scale);
        let upstream = side::<F, N>(output_gradient, batch, head, first, one);
        let own = pairs(place, &mut unit, first, 0usize.runtime(), false, config);
        let logsumexp = load_statistics(statistics, own, LOGSUMEXP);
        let delta = load_statistics(statistics, own, DELTA);
        let seen = tiles_of_keys::<M>(scoring, place, first, config);
        let mut from = first_kv;
        if comptime!(summed.diagonal) {
            from = tile_q + tiles_kv - 1 - own_tile;
        }
        // Only the cube's tiles of keys that some query sees.
        let before = row * count_kv;
        let start = seen.start.max(from + tiles.start.max(before) - before);
        let end = seen.end.min(from + (tiles.end - before).min(count_kv));
        for tile_kv in start..end {
            if has_visible::<M>(scoring, place, tile_q, tile_kv, config) {
                let start = tile_kv * size;
                let keys = side::<F, N>(key, batch, head / group, start, one);
                let values = side::<F, N>(value, batch, head / group, start, one);
                let mut scored =
                    scored::<F, M, N>(queries, keys, scoring, place, &mut unit, false, config);
                weights(&mut scored, &logsumexp);
                let dropped = dropped::<M>(scoring, scored.pairs);
                let gradients = score_gradients::<F, M, N>(
                    &scored, &dropped, upstream, values, &delta, scoring, &mut unit, false,
                );
                #[unroll]
                for i in 0..vectors_per_unit {
                    sums[i] += gradients[i];
                }
            }
        }
    }

    if comptime!(summed.diagonal || summed.queries || summed.keys) {
        sync_cube();
        store_scores(&sums, &mut unit);
        sync_cube();
    }
    let index = UNIT_POS as usize;
    if comptime!(summed.diagonal) {
        if index < comptime!(2 * size - 1) {
            let mut sum = f32::new(0.0);
            for j in 0..size {
                // Row `index - (size - 1) + j`, if it exists.
                let i = index + j + 1;
                if i >= size && i < comptime!(2 * size) {
                    let i = i - size;
                    let four = unit.pool[j * quads + ((i / 4) ^ (j / 4 % quads_of_chunk))];
                    sum += four.extract_dynamic(i % 4);
                }
            }
            let diagonals = gradient.shape(2);
            gradient[(own_head * diagonals + own_tile) * comptime!(2 * size) + index] = sum;
        }
    } else {
        let out_q = gradient.shape(2);
        let out_kv = gradient.shape(3);
        if comptime!(summed.keys) {
            // Sums over keys, four queries per unit.
            let mut sum = Four::new(0.0f32);
            if index < quads {
                for j in 0..size {
                    sum += unit.pool[j * quads + (index ^ (j / 4 % quads_of_chunk))];
                }
            }
            if comptime!(summed.queries) {
                sync_cube();
                if index < quads {
                    unit.pool[index] = sum;
                }
                sync_cube();
                if index == 0 {
                    let mut total = unit.pool[0usize];
                    for quad in 1..quads {
                        total += unit.pool[quad];
                    }
                    gradient[own_head] = sum_of(total);
                }
            } else if index < quads {
                #[unroll]
                for i in 0..4usize {
                    let row = first_q * size + index * 4 + i;
                    if row < len_q {
                        gradient[own_head * out_q + row] = sum.extract(i);
                    }
                }
            }
        } else if comptime!(summed.queries) {
            let column = first_kv * size + index;
            if index < size && column < len_kv {
                let mut sum = Four::new(0.0f32);
                for quad in 0..quads {
                    sum += unit.pool[index * quads + quad];
                }
                gradient[own_head * out_kv + column] = sum_of(sum);
            }
        } else {
            #[unroll]
            for i in 0..rows {
                let row = first_q * size + unit.y * rows + i;
                #[unroll]
                for j in 0..4usize {
                    let column = first_kv * size + unit.x * 4 + j;
                    if row < len_q && column < len_kv {
                        gradient[(own_head * out_q + row) * out_kv + column] = sums[i].extract(j);
                    }
                }
            }
        }
    }
}

/// Adds up the diagonals of [`bias_gradient`] of all batch items: `gradient` is `[heads, entries]`.
#[cube(launch_unchecked)]
pub(crate) fn distance_gradient(
    diagonals: &Tensor<f32>,
    query_offsets: &ComptimeOption<OwnedTensor<i32>>,
    gradient: &mut Tensor<f32>,
    len_q: u32,
    len_kv: u32,
    #[comptime] size: usize,
) {
    let entries = gradient.shape(1);
    let heads = diagonals.shape(1);
    let count = diagonals.shape(2);
    let tiles_kv = (len_kv as usize).div_ceil(size);
    let cube = (CUBE_POS_Y * CUBE_COUNT_X + CUBE_POS_X) as usize;
    let at = cube * crate::tile::UNTILED_UNITS + UNIT_POS as usize;
    if at < heads * entries {
        let head = at / entries;
        let mut sum = f32::new(0.0);
        for batch in 0..diagonals.shape(0) {
            // Without offsets, entries count as if the offset were `-len_q`.
            let (before, len) = (-(len_q as i32), len_kv as i32);
            let offset = clamped(query_offsets, batch, before, len, before);
            let zero = offset + (len_q + len_kv) as i32 - 1;
            // Query less key, counted from the least difference.
            let distance = (at % entries) as i32 - zero + len_kv as i32 - 1;
            if distance >= 0i32 && distance < (len_q + len_kv) as i32 - 1 {
                // Counted from query 0 less the last key of the last tile, so that diagonal `d` of tiles begins at `d * size`.
                let from_first = distance as usize + tiles_kv * size - len_kv as usize;
                let after = from_first / size;
                let inside = from_first % size;
                let base = (batch * heads + head) * count;
                // Two diagonals of tiles have pairs at this distance: number `after`, in the first half of its sums, and the one before,
                // in the second half.
                if after < count {
                    sum += diagonals[(base + after) * comptime!(2 * size) + inside];
                }
                if after > 0 && after - 1 < count && inside + 1 < size {
                    sum += diagonals[(base + after - 1) * comptime!(2 * size) + inside + size];
                }
            }
        }
        gradient[at] = sum;
    }
}
