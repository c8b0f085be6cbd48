//! The gradients of key and value.
//!
//! A cube has a tile of keys of one key/value head and takes the queries of all heads that share it tile by tile, so that
//! nothing is added up between cubes.

use cubecl::{ir::ElemType, prelude::*};

use crate::{
    dropout::{drop_weights, dropped},
    query_gradient::store_gradient,
    score::{Config, Scoring, mark_seen, score},
    tile::{
        Four, add_weighted_rows, clear, clear_flags, dot_products, head_of_cube, rows_of, unit_of,
    },
    visible::{all_seen, has_visible, place, tile_is_visible, tiles_of_queries},
    weights::{DELTA, LOGSUMEXP, load_statistics, score_gradients, weights},
};

#[cube(launch_unchecked)]
pub(crate) fn key_gradient<F: Float, M: Numeric, N: Size>(
    query: &Tensor<Vector<F, N>>,
    key: &Tensor<Vector<F, N>>,
    value: &Tensor<Vector<F, N>>,
    output_gradient: &Tensor<Vector<F, N>>,
    statistics: &Tensor<f32>,
    scoring: &Scoring<M>,
    of_key: &mut ComptimeOption<OwnedTensor<F>>,
    of_value: &mut ComptimeOption<OwnedTensor<F>>,
    heads_of_batch: u32,
    #[comptime] config: Config,
    #[define(F, M)] _types: [ElemType; 2],
) {
    let tile = comptime!(config.tile);
    let rows = comptime!(tile.rows);
    let vectors_per_unit = comptime!(tile.vectors_per_unit());
    let key_parts = comptime!(config.parts_qk);
    let value_parts = comptime!(config.parts_v);
    let unit = unit_of(tile);
    let heads_kv = key.shape(1);
    let group = query.shape(1) / heads_kv;
    let len_q = query.shape(2);
    let len_kv = key.shape(2);
    let head_kv_of_batch = head_of_cube(heads_of_batch);
    let batch = head_kv_of_batch / heads_kv;
    let head_kv = head_kv_of_batch % heads_kv;
    let first = CUBE_POS_X as usize * tile.size;
    let row = first + unit.y * rows;
    let keys = rows_of::<F, N>(key, batch, head_kv, first);
    let values = rows_of::<F, N>(value, batch, head_kv, first);

    let mut pool = Shared::<[Four]>::new_slice(comptime!(tile.pool()));
    let mut seen = Shared::<[u32]>::new_slice(comptime!(tile.size));
    let mut key_sums = Array::<Four>::new(comptime!(vectors_per_unit * key_parts));
    let mut value_sums = Array::<Four>::new(comptime!(vectors_per_unit * value_parts));
    clear(&mut key_sums, comptime!(vectors_per_unit * key_parts));
    clear(&mut value_sums, comptime!(vectors_per_unit * value_parts));

    for member in 0..group {
        let head = head_kv * group + member;
        let place = place::<M>(scoring, batch, head, len_q, len_kv);
        let head_of_batch = batch * query.shape(1) + head;
        let tiles = tiles_of_queries::<M>(scoring, place, first, config);
        for number in tiles.start..tiles.end {
            if has_visible::<M>(scoring, place, number, first / tile.size) {
                let start = number * tile.size;
                let column = start + unit.x * 4;
                let queries = rows_of::<F, N>(query, batch, head, start);
                let upstream = rows_of::<F, N>(output_gradient, batch, head, start);
                let mut scores = Array::<Four>::new(vectors_per_unit);
                let mut dsoftcap = Array::<Four>::new(vectors_per_unit);
                clear(&mut scores, vectors_per_unit);
                dot_products::<F, N>(
                    key,
                    keys,
                    f32::new(1.0),
                    query,
                    queries,
                    scoring.scale,
                    &mut scores,
                    &mut pool,
                    unit,
                    tile,
                );
                let visible = tile_is_visible::<M>(scoring, place, start, first, config);
                let all_seen = all_seen::<M>(scoring, visible);
                let hidden = score::<M>(
                    &mut scores,
                    &mut dsoftcap,
                    scoring,
                    place,
                    row,
                    column,
                    visible,
                    true,
                    config,
                );
                let logsumexp = load_statistics(
                    statistics,
                    head_of_batch,
                    column,
                    len_q,
                    LOGSUMEXP,
                    true,
                    tile,
                );
                weights(&mut scores, &hidden, &logsumexp, true, config);
                let dropped = dropped::<M>(scoring, place, row, column, true, config);
                clear_flags(&mut seen, tile);
                sync_cube();
                mark_seen(&hidden, &mut seen, unit, config);

                if comptime!(of_value.is_some()) {
                    let mut after_dropout = Array::<Four>::new(vectors_per_unit);
                    #[unroll]
                    for i in 0..vectors_per_unit {
                        after_dropout[i] = scores[i];
                    }
                    drop_weights::<M>(&mut after_dropout, &dropped, scoring, config);
                    add_weighted_rows::<F, N>(
                        &after_dropout,
                        output_gradient,
                        upstream,
                        &seen,
                        all_seen,
                        &mut value_sums,
                        value_parts,
                        &mut pool,
                        unit,
                        tile,
                    );
                }
                if comptime!(of_key.is_some()) {
                    let mut weight_gradients = Array::<Four>::new(vectors_per_unit);
                    clear(&mut weight_gradients, vectors_per_unit);
                    dot_products::<F, N>(
                        value,
                        values,
                        f32::new(1.0),
                        output_gradient,
                        upstream,
                        f32::new(1.0),
                        &mut weight_gradients,
                        &mut pool,
                        unit,
                        tile,
                    );
                    let delta = load_statistics(
                        statistics,
                        head_of_batch,
                        column,
                        len_q,
                        DELTA,
                        true,
                        tile,
                    );
                    score_gradients(
                        &mut weight_gradients,
                        &scores,
                        &dsoftcap,
                        &hidden,
                        &dropped,
                        scoring.keep_scale,
                        &delta,
                        true,
                        true,
                        config,
                    );
                    sync_cube();
                    add_weighted_rows::<F, N>(
                        &weight_gradients,
                        query,
                        queries,
                        &seen,
                        all_seen,
                        &mut key_sums,
                        key_parts,
                        &mut pool,
                        unit,
                        tile,
                    );
                }
            }
        }
    }

    #[comptime]
    match of_key {
        ComptimeOption::Some(gradient) => {
            let to = batch * gradient.stride(0) + head_kv * gradient.stride(1);
            store_gradient::<F>(
                &key_sums,
                scoring.scale,
                gradient,
                to,
                row,
                len_kv,
                unit.x * 4,
                comptime!(config.parts_qk),
                config,
            );
        }
        ComptimeOption::None => {}
    };
    #[comptime]
    match of_value {
        ComptimeOption::Some(gradient) => {
            let to = batch * gradient.stride(0) + head_kv * gradient.stride(1);
            store_gradient::<F>(
                &value_sums,
                f32::new(1.0),
                gradient,
                to,
                row,
                len_kv,
                unit.x * 4,
                comptime!(config.parts_v),
                config,
            );
        }
        ComptimeOption::None => {}
    };
}
