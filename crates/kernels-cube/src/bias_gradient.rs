//! The gradients of the dense bias and of the distance bias.
//!
//! A cube has a part of the bias. It adds up the score gradients of the tiles that the part was added to, or of a [`share`](crate::share) of
//! them, in a fixed order. The dense bias has one tile per batch item and head that share the part, and more tiles where it is broadcast over
//! queries or keys. The distance bias has one diagonal of tiles of one batch item and head; a second kernel adds up its batch items.

use cubecl::{ir::ElemType, prelude::*};

use crate::{
    bias_part::{Sums, part_of_bias, row_of_part, store_part},
    dropout::dropped,
    score::scored,
    scoring::{Config, Scoring},
    tile::{side, unit, zeros},
    visible::{clamped, has_visible, pairs},
    weights::{DELTA, LOGSUMEXP, load_statistics, to_score_gradients, weight_gradients, weights},
};

/// `gradient` is row-major: a gradient of the bias's shape for each split, or `[batch, heads, diagonals of tiles, 2 * tile.size]`.
#[cfg_attr(test, cube(launch_unchecked, create_dummy_kernel))]
#[cfg_attr(not(test), cube(launch_unchecked))]
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
    let vectors_per_unit = comptime!(tile.vectors_per_unit());
    let group = query.shape(1) / key.shape(1);
    let one = f32::new(1.0);
    let mut unit = unit(tile);
    let mut sums = zeros(vectors_per_unit);
    let part = part_of_bias(gradient, query, key, tiles_of_head, summed, config);
    for number in part.rows.start..part.rows.end {
        let row = row_of_part::<M>(part, number, scoring, summed, config);
        let (place, first) = (row.place, row.tile_q * tile.size);
        let (batch, head) = (place.batch, place.head);
        let queries = side::<F, N>(query, batch, head, first, scoring.scale);
        let upstream = side::<F, N>(output_gradient, batch, head, first, one);
        let own = pairs(place, &mut unit, first, 0usize.runtime(), config);
        let logsumexp = load_statistics(statistics, own, LOGSUMEXP);
        let delta = load_statistics(statistics, own, DELTA);
        for tile_kv in row.tiles.start..row.tiles.end {
            if has_visible::<M>(scoring, place, row.tile_q, tile_kv, config) {
                let start = tile_kv * tile.size;
                let keys = side::<F, N>(key, batch, head / group, start, one);
                let values = side::<F, N>(value, batch, head / group, start, one);
                let mut scored =
                    scored::<F, M, N>(queries, keys, scoring, place, &mut unit, config);
                weights(&mut scored, &logsumexp);
                let dropped = dropped::<M>(scoring, scored.pairs);
                let mut gradients = weight_gradients::<F, M, N>(
                    upstream, values, &dropped, scoring, &mut unit, config,
                );
                to_score_gradients(&scored, &mut gradients, &delta, false);
                #[unroll]
                for i in 0..vectors_per_unit {
                    sums[i] += gradients[i];
                }
            }
        }
    }
    store_part(&sums, part, gradient, &mut unit, summed, config);
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
