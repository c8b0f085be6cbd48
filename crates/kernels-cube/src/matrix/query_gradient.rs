//! The gradient of the query: as [`crate::query_gradient`], on matrix units.

use cubecl::{ir::ElemType, prelude::*};

use super::{
    fragments::{
        Fragments, add_weighted_rows, dot_products, own_rows, part_of_sums, reduce_row,
        unit_of_plane, zero_sums,
    },
    operands::{clear_unseen, load_operand, none_ahead, operands},
    rescale::fit,
    shape::Matrix,
    tiles::{fetch_tile, put_tile, source},
    weights::weight_gradients,
};
use crate::{
    score::{mark_seen, scored_products},
    scoring::{Config, Scoring},
    share::{batch_of_results, shared},
    site::site,
    store::{store_deltas, store_rows},
    tile::{Unit, side},
    visible::{Pairs, pairs, tiles_of_keys},
    weights::{
        DELTA, LOGSUMEXP, add_deltas, load_statistics, no_deltas, to_score_gradients, weights,
    },
};

#[cfg_attr(test, cube(launch_unchecked, create_dummy_kernel))]
#[cfg_attr(not(test), cube(launch_unchecked))]
pub(crate) fn query_gradient<F: Float, M: Numeric, O: Float, T: Float, N: Size>(
    query: &Tensor<Vector<F, N>>,
    key: &Tensor<Vector<F, N>>,
    value: &Tensor<Vector<F, N>>,
    output_gradient: &Tensor<Vector<F, N>>,
    statistics: &Tensor<f32>,
    scoring: &Scoring<M>,
    of_query: &mut ComptimeOption<OwnedTensor<O>>,
    of_delta: &mut ComptimeOption<OwnedTensor<f32>>,
    #[comptime] config: Config,
    #[define(F, M, O, T)] _types: [ElemType; 4],
) {
    let tile = comptime!(config.tile);
    let matrix = comptime!(config.matrix.unwrap());
    let (dim_qk, dim_v) = comptime!((matrix.dim_qk, matrix.dim_v));
    let one = f32::new(1.0);
    let site = site::<F, M, N>(query, key, scoring, config);
    let (place, first) = (site.place, site.first);
    let (batch, head) = (place.batch, place.head);
    let upstream = side::<F, N>(output_gradient, batch, head, first, one);
    let mut unit = unit_of_plane(tile, matrix);
    let mut operands = operands::<T>(matrix);
    let mut own = pairs(place, &mut unit, first, 0usize.runtime(), config);
    let logsumexp = load_statistics(statistics, own, LOGSUMEXP);
    let delta = load_statistics(statistics, own, DELTA);
    let queries = own_rows::<F, T, N>(
        site.queries,
        &mut unit,
        &mut operands,
        1usize,
        dim_qk,
        matrix,
    );
    let upstream = own_rows::<F, T, N>(upstream, &mut unit, &mut operands, 1usize, dim_v, matrix);
    let mut sums = zero_sums(dim_qk, matrix);
    let mut deltas = no_deltas(tile);
    let mut factor = f32::new(0.0);

    let tiles = tiles_of_keys::<M>(scoring, place, first, config);
    let tiles = shared(tiles, site.share, 0usize, 1usize, config);
    let (end, own_tile) = (tiles.end, first / tile.height);
    let mut ahead = none_ahead::<F>(matrix);
    let source = source::<F, N>(key, value, batch, site.head_kv);
    let from = tiles.start;
    let mut number = fetch_tile::<F, M, N>(
        source, scoring, place, from, end, own_tile, &mut ahead, config,
    );
    while number < end {
        let start = number * tile.size;
        let keys = side::<F, N>(key, batch, site.head_kv, start, one);
        let values = side::<F, N>(value, batch, site.head_kv, start, one);
        put_tile::<F, T, N>(source, number, &ahead, &mut unit, &mut operands, config);
        let from = number + 1;
        number = fetch_tile::<F, M, N>(
            source, scoring, place, from, end, own_tile, &mut ahead, config,
        );
        let products = dot_products::<T>(
            &queries,
            scoring.scale,
            &mut unit,
            &mut operands,
            0usize,
            dim_qk,
            matrix,
        );
        let mut scored =
            scored_products::<M>(products, first, start, scoring, place, &mut unit, config);
        weights(&mut scored, &logsumexp);
        let mut gradients = weight_gradients::<F, M, T, N>(
            &upstream,
            values,
            scoring,
            scored.pairs,
            &mut unit,
            &mut operands,
            matrix,
        );
        if comptime!(of_delta.is_some()) {
            add_deltas(&scored, &gradients, &mut deltas);
        }
        if comptime!(of_query.is_some()) {
            if !scored.all_seen {
                mark_seen(&scored.hidden, &mut unit);
            }
            to_score_gradients(&scored, &mut gradients, &delta, true);
            if comptime!(matrix.scaled) {
                factor = fit(&mut gradients, factor, &mut sums, &mut unit, dim_qk, matrix);
            }
            if comptime!(matrix.operands == 1) {
                sync_cube();
                load_operand::<F, T, N>(
                    keys,
                    scored.all_seen,
                    &mut unit,
                    &mut operands,
                    matrix.operand(0),
                    dim_qk,
                    matrix,
                );
                sync_cube();
            } else if !scored.all_seen {
                sync_cube();
                clear_unseen(&mut unit, &mut operands, 0usize, dim_qk, matrix);
                sync_cube();
            }
            add_weighted_rows::<T>(
                &gradients,
                &sums,
                &mut unit,
                &mut operands,
                0usize,
                dim_qk,
                matrix,
            );
        }
    }
    own.place.batch = batch_of_results(site.share, batch, query.shape(0), config);
    #[comptime]
    if let ComptimeOption::Some(of_delta) = of_delta {
        deltas[0usize] = reduce_row(deltas[0usize], false, tile);
        store_deltas(&deltas, of_delta, own, &mut unit);
    }
    #[comptime]
    if let ComptimeOption::Some(gradient) = of_query {
        let scale = scoring.scale / select(factor == f32::new(0.0), one, factor);
        store_sums::<O>(&mut sums, scale, gradient, own, &mut unit, dim_qk, matrix);
    }
}

/// Writes a unit's part of a gradient, times `factor`. Batch item and head of `pairs` are those of the gradient.
#[cube]
pub(crate) fn store_sums<F: Float>(
    sums: &mut Fragments<f32>,
    factor: f32,
    gradient: &mut Tensor<F>,
    pairs: Pairs,
    unit: &mut Unit,
    #[comptime] dim: usize,
    #[comptime] matrix: Matrix,
) {
    #[unroll]
    for part in 0..comptime!(matrix.parts(dim)) {
        let numbers = part_of_sums(sums, unit, part, dim, matrix);
        store_rows::<F>(&numbers, factor, gradient, pairs, part, 1usize);
    }
}
