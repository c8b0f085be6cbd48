//! The gradients of key and value: as [`crate::key_gradient`], on matrix units.

use cubecl::{ir::ElemType, prelude::*};

use super::{
    columns::{load_column_statistics, of_columns},
    fragments::{Fragments, add_weighted_rows, dot_products, own_rows, unit_of_plane, zero_sums},
    operands::{clear_unseen, load_operand, none_ahead, operands},
    query_gradient::store_sums,
    rescale::fit,
    shape::Matrix,
    tiles::{fetch_tile, put_tile, source},
};
use crate::{
    dropout::{
        column_states, drop_weights, dropped_of_columns, keep_scale, load_column_states,
        zero_dropped,
    },
    score::{mark_seen, scored_products},
    scoring::{Config, Scoring},
    share::{batch_of_results, shared},
    site::site_of_keys,
    tile::{Four, side},
    visible::{pairs, place, tiles_of_queries},
    weights::{DELTA, LOGSUMEXP, to_score_gradients, weights},
};

/// Factor of the weights, which are at most 1 but for rounding: it keeps small weights in the range of f16. With other operands sums would overflow sooner.
fn raised(matrix: Matrix) -> f32 {
    if matrix.scaled { 4096.0 } else { 1.0 }
}

#[cfg_attr(test, cube(launch_unchecked, create_dummy_kernel))]
#[cfg_attr(not(test), cube(launch_unchecked))]
pub(crate) fn key_gradient<F: Float, M: Numeric, O: Float, T: Float, N: Size>(
    query: &Tensor<Vector<F, N>>,
    key: &Tensor<Vector<F, N>>,
    value: &Tensor<Vector<F, N>>,
    output_gradient: &Tensor<Vector<F, N>>,
    statistics: &Tensor<f32>,
    scoring: &Scoring<M>,
    of_key: &mut ComptimeOption<OwnedTensor<O>>,
    of_value: &mut ComptimeOption<OwnedTensor<O>>,
    #[comptime] config: Config,
    #[define(F, M, O, T)] _types: [ElemType; 4],
) {
    let tile = comptime!(config.tile);
    let matrix = comptime!(config.matrix.unwrap());
    let groups = comptime!(tile.groups());
    let two = comptime!(matrix.operands > 1);
    let (dim_qk, dim_v) = comptime!((matrix.dim_qk, matrix.dim_v));
    let one = f32::new(1.0);
    let site = site_of_keys::<F, N>(query, key, config);
    let (batch, head_kv, first) = (site.batch, site.head_kv, site.first);
    let (len_q, len_kv) = (site.len_q, site.len_kv);
    let mut unit = unit_of_plane(tile, matrix);
    let mut operands = operands::<T>(matrix);
    let keys = side::<F, N>(key, batch, head_kv, first, one);
    let keys = own_rows::<F, T, N>(keys, &mut unit, &mut operands, 1usize, dim_qk, matrix);
    let values = if comptime!(of_key.is_some()) {
        let values = side::<F, N>(value, batch, head_kv, first, one);
        own_rows::<F, T, N>(values, &mut unit, &mut operands, 1usize, dim_v, matrix)
    } else {
        Fragments::<T>::new()
    };
    let mut key_sums = zero_sums(dim_qk, matrix);
    let mut factor = f32::new(0.0);
    let mut value_sums = zero_sums(dim_v, matrix);

    let mut states = column_states(config);
    let mut ahead = none_ahead::<F>(matrix);
    for member in 0..site.group {
        let head = head_kv * site.group + member;
        let place = place::<M>(scoring, batch, head, len_q, len_kv);
        let tiles = tiles_of_queries::<M>(scoring, place, first, config);
        let tiles = shared(tiles, site.share, member, site.group, config);
        let (end, own) = (tiles.end, first / tile.height);
        let source = source::<F, N>(query, output_gradient, batch, head);
        let from = tiles.start;
        let mut number =
            fetch_tile::<F, M, N>(source, scoring, place, from, end, own, &mut ahead, config);
        while number < end {
            let start = number * tile.size;
            let queries = side::<F, N>(query, batch, head, start, one);
            let upstream = side::<F, N>(output_gradient, batch, head, start, one);
            put_tile::<F, T, N>(source, number, &ahead, &mut unit, &mut operands, config);
            load_column_statistics(statistics, place, start, &mut unit, matrix);
            load_column_states::<M>(&mut states, scoring, place, start, config);
            let from = number + 1;
            number =
                fetch_tile::<F, M, N>(source, scoring, place, from, end, own, &mut ahead, config);
            let products = dot_products::<T>(
                &keys,
                scoring.scale,
                &mut unit,
                &mut operands,
                0usize,
                dim_qk,
                matrix,
            );
            let mut scored =
                scored_products::<M>(products, first, start, scoring, place, &mut unit, config);
            let logsumexp = of_columns(&mut unit, LOGSUMEXP, matrix);
            weights(&mut scored, &logsumexp);
            if !scored.all_seen {
                mark_seen(&scored.hidden, &mut unit);
            }
            let all_seen = scored.all_seen;
            if comptime!(!two) {
                sync_cube();
                load_operand::<F, T, N>(
                    upstream,
                    all_seen,
                    &mut unit,
                    &mut operands,
                    matrix.operand(1),
                    dim_v,
                    matrix,
                );
                sync_cube();
            } else if !all_seen {
                sync_cube();
                if comptime!(of_key.is_some()) {
                    clear_unseen(&mut unit, &mut operands, 0usize, dim_qk, matrix);
                }
                clear_unseen(&mut unit, &mut operands, 1usize, dim_v, matrix);
                sync_cube();
            }
            // Once for both gradients.
            let dropped = dropped_of_columns::<M>(&states, start, scoring, scored.pairs);
            if comptime!(of_value.is_some()) {
                let mut after_dropout = Array::<Four>::new(groups);
                #[unroll]
                for i in 0..groups {
                    after_dropout[i] = scored.scores[i];
                }
                zero_dropped(&mut after_dropout, &dropped, config);
                #[unroll]
                for i in 0..groups {
                    after_dropout[i] *= Four::new(comptime!(raised(matrix)));
                }
                add_weighted_rows::<T>(
                    &after_dropout,
                    &value_sums,
                    &mut unit,
                    &mut operands,
                    1usize,
                    dim_v,
                    matrix,
                );
            }
            if comptime!(of_key.is_some()) {
                let mut gradients = dot_products::<T>(
                    &values,
                    one,
                    &mut unit,
                    &mut operands,
                    1usize,
                    dim_v,
                    matrix,
                );
                let delta = of_columns(&mut unit, DELTA, matrix);
                drop_weights::<M>(&mut gradients, &dropped, scoring, config);
                to_score_gradients(&scored, &mut gradients, &delta, true);
                if comptime!(matrix.scaled) {
                    factor = fit(
                        &mut gradients,
                        factor,
                        &mut key_sums,
                        &mut unit,
                        dim_qk,
                        matrix,
                    );
                }
                if comptime!(!two) {
                    sync_cube();
                    load_operand::<F, T, N>(
                        queries,
                        all_seen,
                        &mut unit,
                        &mut operands,
                        matrix.operand(0),
                        dim_qk,
                        matrix,
                    );
                    sync_cube();
                }
                add_weighted_rows::<T>(
                    &gradients,
                    &key_sums,
                    &mut unit,
                    &mut operands,
                    0usize,
                    dim_qk,
                    matrix,
                );
            }
        }
    }

    let mut place = place::<M>(scoring, batch, head_kv, len_q, len_kv);
    place.batch = batch_of_results(site.share, batch, key.shape(0), config);
    let own = pairs(place, &mut unit, first, 0usize.runtime(), config);
    #[comptime]
    if let ComptimeOption::Some(gradient) = of_key {
        let scale = scoring.scale / select(factor == f32::new(0.0), one, factor);
        store_sums::<O>(
            &mut key_sums,
            scale,
            gradient,
            own,
            &mut unit,
            dim_qk,
            matrix,
        );
    }
    #[comptime]
    if let ComptimeOption::Some(gradient) = of_value {
        let scale = keep_scale::<M>(scoring, config) / f32::new(comptime!(raised(matrix)));
        store_sums::<O>(
            &mut value_sums,
            scale,
            gradient,
            own,
            &mut unit,
            dim_v,
            matrix,
        );
    }
}
