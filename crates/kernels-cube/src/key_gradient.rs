//! The gradients of key and value.
//!
//! A cube has a tile of keys of one key/value head and takes the queries of all heads that share it tile by tile, so that
//! no two cubes add to the same gradient.

use cubecl::{ir::ElemType, prelude::*};

use crate::{
    dropout::{column_states, dropped_of_columns, keep_scale, load_column_states, zero_dropped},
    products::add_weighted_rows,
    score::{mark_seen, scored},
    scoring::{Config, Scoring},
    share::{batch_of_results, shared},
    site::site_of_keys,
    store::store_rows,
    tile::{Four, clear_flags, side, unit, zeros},
    visible::{has_visible, pairs, place, tiles_of_queries},
    weights::{DELTA, LOGSUMEXP, load_statistics, to_score_gradients, weight_gradients, weights},
};

#[cfg_attr(test, cube(launch_unchecked, create_dummy_kernel))]
#[cfg_attr(not(test), cube(launch_unchecked))]
pub(crate) fn key_gradient<F: Float, M: Numeric, O: Float, N: Size>(
    query: &Tensor<Vector<F, N>>,
    key: &Tensor<Vector<F, N>>,
    value: &Tensor<Vector<F, N>>,
    output_gradient: &Tensor<Vector<F, N>>,
    statistics: &Tensor<f32>,
    scoring: &Scoring<M>,
    of_key: &mut ComptimeOption<OwnedTensor<O>>,
    of_value: &mut ComptimeOption<OwnedTensor<O>>,
    #[comptime] config: Config,
    #[define(F, M, O)] _types: [ElemType; 3],
) {
    let tile = comptime!(config.tile);
    let vectors_per_unit = comptime!(tile.vectors_per_unit());
    let (key_parts, value_parts) = comptime!((config.parts_qk, config.parts_v));
    let one = f32::new(1.0);
    let site = site_of_keys::<F, N>(query, key, config);
    let (batch, head_kv, first) = (site.batch, site.head_kv, site.first);
    let (len_q, len_kv) = (site.len_q, site.len_kv);
    let keys = side::<F, N>(key, batch, head_kv, first, one);
    let values = side::<F, N>(value, batch, head_kv, first, one);
    let mut unit = unit(tile);
    let mut key_sums = zeros(comptime!(vectors_per_unit * key_parts));
    let mut value_sums = zeros(comptime!(vectors_per_unit * value_parts));
    let mut states = column_states(config);

    for member in 0..site.group {
        let head = head_kv * site.group + member;
        let place = place::<M>(scoring, batch, head, len_q, len_kv);
        let tiles = tiles_of_queries::<M>(scoring, place, first, config);
        let tiles = shared(tiles, site.share, member, site.group, config);
        for number in tiles.start..tiles.end {
            if has_visible::<M>(scoring, place, number, first / tile.size, config) {
                let start = number * tile.size;
                let queries = side::<F, N>(query, batch, head, start, scoring.scale);
                let upstream = side::<F, N>(output_gradient, batch, head, start, one);
                let mut scored =
                    scored::<F, M, N>(keys, queries, scoring, place, &mut unit, config);
                let logsumexp = load_statistics(statistics, scored.pairs, LOGSUMEXP);
                weights(&mut scored, &logsumexp);
                clear_flags(&mut unit);
                load_column_states::<M>(&mut states, scoring, place, start, config);
                sync_cube();
                mark_seen(&scored.hidden, &mut unit);

                // Once for both gradients.
                let dropped = dropped_of_columns::<M>(&states, start, scoring, scored.pairs);
                if comptime!(of_value.is_some()) {
                    let mut after_dropout = Array::<Four>::new(vectors_per_unit);
                    #[unroll]
                    for i in 0..vectors_per_unit {
                        after_dropout[i] = scored.scores[i];
                    }
                    zero_dropped(&mut after_dropout, &dropped, config);
                    add_weighted_rows::<F, N>(
                        &after_dropout,
                        upstream,
                        scored.all_seen,
                        &mut value_sums,
                        &mut unit,
                        value_parts,
                    );
                }
                if comptime!(of_key.is_some()) {
                    let delta = load_statistics(statistics, scored.pairs, DELTA);
                    let mut gradients = weight_gradients::<F, M, N>(
                        values, upstream, &dropped, scoring, &mut unit, config,
                    );
                    to_score_gradients(&scored, &mut gradients, &delta, true);
                    sync_cube();
                    add_weighted_rows::<F, N>(
                        &gradients,
                        queries,
                        scored.all_seen,
                        &mut key_sums,
                        &mut unit,
                        key_parts,
                    );
                }
            }
        }
    }

    let mut place = place::<M>(scoring, batch, head_kv, len_q, len_kv);
    place.batch = batch_of_results(site.share, batch, key.shape(0), config);
    let own = pairs(place, &mut unit, first, 0usize.runtime(), config);
    #[comptime]
    if let ComptimeOption::Some(gradient) = of_key {
        store_rows::<O>(&key_sums, scoring.scale, gradient, own, 0usize, key_parts);
    }
    #[comptime]
    if let ComptimeOption::Some(gradient) = of_value {
        let kept = keep_scale::<M>(scoring, config);
        store_rows::<O>(&value_sums, kept, gradient, own, 0usize, value_parts);
    }
}
