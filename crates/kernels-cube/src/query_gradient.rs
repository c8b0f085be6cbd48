//! The gradient of the query.
//!
//! As in the forward pass, a cube has a tile of queries of one head and takes the keys tile by tile. Beside or in place of the gradient, `of_delta` is
//! what [`exact_delta`](crate::row_statistics::exact_delta) reads.
//!
//! Source: Dao, "FlashAttention-2" (arXiv:2307.08691), algorithm 2, with a kernel for the query's gradient alone: no two
//! cubes add to the same number, so a call gives the same bits every time.

use cubecl::{ir::ElemType, prelude::*};

use crate::{
    dropout::dropped,
    forward::reduce_rows,
    products::add_weighted_rows,
    score::{mark_seen, scored},
    scoring::{Config, Scoring},
    share::{batch_of_results, shared},
    site::site,
    store::{store_deltas, store_rows},
    tile::{clear_flags, side, unit, zeros},
    visible::{has_visible, pairs, tiles_of_keys},
    weights::{
        DELTA, LOGSUMEXP, add_deltas, load_statistics, no_deltas, to_score_gradients,
        weight_gradients, weights,
    },
};

#[cfg_attr(test, cube(launch_unchecked, create_dummy_kernel))]
#[cfg_attr(not(test), cube(launch_unchecked))]
pub(crate) fn query_gradient<F: Float, M: Numeric, O: Float, N: Size>(
    query: &Tensor<Vector<F, N>>,
    key: &Tensor<Vector<F, N>>,
    value: &Tensor<Vector<F, N>>,
    output_gradient: &Tensor<Vector<F, N>>,
    statistics: &Tensor<f32>,
    scoring: &Scoring<M>,
    of_query: &mut ComptimeOption<OwnedTensor<O>>,
    of_delta: &mut ComptimeOption<OwnedTensor<f32>>,
    #[comptime] config: Config,
    #[define(F, M, O)] _types: [ElemType; 3],
) {
    let tile = comptime!(config.tile);
    let parts = comptime!(config.parts_qk);
    let one = f32::new(1.0);
    let site = site::<F, M, N>(query, key, scoring, config);
    let (place, first, queries) = (site.place, site.first, site.queries);
    let (batch, head) = (place.batch, place.head);
    let upstream = side::<F, N>(output_gradient, batch, head, first, one);
    let mut unit = unit(tile);
    let mut own = pairs(place, &mut unit, first, 0usize.runtime(), config);
    let logsumexp = load_statistics(statistics, own, LOGSUMEXP);
    let delta = load_statistics(statistics, own, DELTA);
    let mut sums = zeros(comptime!(tile.vectors_per_unit() * parts));
    let mut deltas = no_deltas(tile);

    let tiles = tiles_of_keys::<M>(scoring, place, first, config);
    let tiles = shared(tiles, site.share, 0usize, 1usize, config);
    for number in tiles.start..tiles.end {
        if has_visible::<M>(scoring, place, first / tile.size, number, config) {
            let start = number * tile.size;
            let keys = side::<F, N>(key, batch, site.head_kv, start, one);
            let values = side::<F, N>(value, batch, site.head_kv, start, one);
            let mut scored = scored::<F, M, N>(queries, keys, scoring, place, &mut unit, config);
            weights(&mut scored, &logsumexp);
            clear_flags(&mut unit);
            let dropped = dropped::<M>(scoring, scored.pairs);
            let mut gradients =
                weight_gradients::<F, M, N>(upstream, values, &dropped, scoring, &mut unit, config);
            if comptime!(of_delta.is_some()) {
                add_deltas(&scored, &gradients, &mut deltas);
            }
            if comptime!(of_query.is_some()) {
                to_score_gradients(&scored, &mut gradients, &delta, true);
                mark_seen(&scored.hidden, &mut unit);
                sync_cube();
                let all_seen = scored.all_seen;
                add_weighted_rows::<F, N>(&gradients, keys, all_seen, &mut sums, &mut unit, parts);
            }
        }
    }

    own.place.batch = batch_of_results(site.share, batch, query.shape(0), config);
    #[comptime]
    if let ComptimeOption::Some(gradient) = of_query {
        store_rows::<O>(&sums, scoring.scale, gradient, own, 0usize, parts);
    }
    #[comptime]
    if let ComptimeOption::Some(of_delta) = of_delta {
        sync_cube();
        reduce_rows(&mut deltas, &mut unit, 0usize, false);
        store_deltas(&deltas, of_delta, own, &mut unit);
    }
}
