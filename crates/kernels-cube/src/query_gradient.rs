//! The gradient of the query.
//!
//! As in the forward pass, a cube has a tile of queries of one head and takes the keys tile by tile.
//!
//! Source: Dao, "FlashAttention-2" (arXiv:2307.08691), algorithm 2, with the loops of the query's gradient apart from
//! the others: no sums of several cubes, so the same bits every time.

use cubecl::{ir::ElemType, prelude::*};

use crate::{
    score::{mark_seen, scored},
    scoring::{Config, Scoring},
    tile::{Four, add_weighted_rows, clear_flags, side, unit, zeros},
    visible::{Pairs, all_seen, has_visible, pairs, site, tile_is_visible, tiles_of_keys},
    weights::{DELTA, LOGSUMEXP, load_statistics, score_gradients, weights},
};

#[cube(launch_unchecked)]
pub(crate) fn query_gradient<F: Float, M: Numeric, N: Size>(
    query: &Tensor<Vector<F, N>>,
    key: &Tensor<Vector<F, N>>,
    value: &Tensor<Vector<F, N>>,
    output_gradient: &Tensor<Vector<F, N>>,
    statistics: &Tensor<f32>,
    scoring: &Scoring<M>,
    gradient: &mut Tensor<F>,
    heads_of_batch: u32,
    #[comptime] config: Config,
    #[define(F, M)] _types: [ElemType; 2],
) {
    let tile = comptime!(config.tile);
    let parts = comptime!(config.parts_qk);
    let one = f32::new(1.0);
    let site = site::<F, M, N>(query, key, scoring, heads_of_batch, config);
    let (place, first) = (site.place, site.first);
    let (batch, head) = (place.batch, place.head);
    let upstream = side::<F, N>(output_gradient, batch, head, first, one);
    let mut unit = unit(tile);
    let own = pairs(place, &unit, first, 0usize.runtime(), false, config);
    let logsumexp = load_statistics(statistics, own, LOGSUMEXP);
    let delta = load_statistics(statistics, own, DELTA);
    let mut sums = zeros(comptime!(tile.vectors_per_unit() * parts));

    let tiles = tiles_of_keys::<M>(scoring, place, first, config);
    for number in tiles.start..tiles.end {
        if has_visible::<M>(scoring, place, first / tile.size, number) {
            let start = number * tile.size;
            let keys = side::<F, N>(key, batch, site.head_kv, start, one);
            let values = side::<F, N>(value, batch, site.head_kv, start, one);
            let pairs = pairs(place, &unit, first, start, false, config);
            let visible = tile_is_visible::<M>(scoring, place, first, start, config);
            let all_seen = all_seen::<M>(scoring, visible);
            let mut scored = scored::<F, M, N>(
                query,
                site.queries,
                key,
                keys,
                scoring,
                pairs,
                visible,
                &mut unit,
            );
            weights(&mut scored, &logsumexp, pairs);
            clear_flags(&mut unit);
            let gradients = score_gradients::<F, M, N>(
                &scored,
                output_gradient,
                upstream,
                value,
                values,
                &delta,
                scoring,
                pairs,
                &mut unit,
                true,
            );
            mark_seen(&scored.hidden, &mut unit);
            sync_cube();
            add_weighted_rows::<F, N>(&gradients, key, keys, all_seen, &mut sums, &mut unit, parts);
        }
    }

    let to = batch * gradient.stride(0) + head * gradient.stride(1);
    store_gradient::<F>(&sums, scoring.scale, gradient, to, own, place.len_q, parts);
}

/// Writes a unit's part of a gradient, times `factor`: its rows, and columns from its first on.
#[cube]
pub(crate) fn store_gradient<F: Float>(
    sums: &Array<Four>,
    factor: f32,
    gradient: &mut Tensor<F>,
    to: usize,
    pairs: Pairs,
    end: usize,
    #[comptime] parts: usize,
) {
    let tile = comptime!(pairs.config.tile);
    let dim = gradient.shape(3);
    let stride = gradient.stride(2);
    #[unroll]
    for i in 0..comptime!(tile.rows) {
        let row = pairs.row + i;
        if row < end {
            #[unroll]
            for part in 0..comptime!(parts * tile.groups()) {
                let four = sums[comptime!(i * parts * tile.groups() + part)];
                let group = comptime!(part % tile.groups());
                let skip = comptime!(part / tile.groups() * tile.size + tile.skip(group));
                #[unroll]
                for j in 0..4usize {
                    let at = comptime!(skip + j) + pairs.column;
                    if at < dim {
                        gradient[to + row * stride + at] = F::cast_from(four.extract(j) * factor);
                    }
                }
            }
        }
    }
}
