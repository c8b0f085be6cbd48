//! The gradients of biases: as [`crate::bias_gradient`], on matrix units.

use cubecl::{ir::ElemType, prelude::*};

use super::{
    fragments::{dot_products, own_rows, unit_of_plane},
    operands::{none_ahead, operands},
    tiles::{fetch_tile, put_tile, source},
    weights::weight_gradients,
};
use crate::{
    bias_part::{Sums, part_of_bias, row_of_part, store_part},
    score::scored_products,
    scoring::{Config, Scoring},
    tile::{side, zeros},
    visible::pairs,
    weights::{DELTA, LOGSUMEXP, load_statistics, to_score_gradients, weights},
};

#[cfg_attr(test, cube(launch_unchecked, create_dummy_kernel))]
#[cfg_attr(not(test), cube(launch_unchecked))]
pub(crate) fn bias_gradient<F: Float, M: Numeric, T: Float, N: Size>(
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
    #[define(F, M, T)] _types: [ElemType; 3],
) {
    let tile = comptime!(config.tile);
    let matrix = comptime!(config.matrix.unwrap());
    let (dim_qk, dim_v) = comptime!((matrix.dim_qk, matrix.dim_v));
    let vectors_per_unit = comptime!(tile.vectors_per_unit());
    let group = query.shape(1) / key.shape(1);
    let one = f32::new(1.0);
    let mut unit = unit_of_plane(tile, matrix);
    let mut operands = operands::<T>(matrix);
    let mut ahead = none_ahead::<F>(matrix);
    let mut sums = zeros(vectors_per_unit);
    let part = part_of_bias(gradient, query, key, tiles_of_head, summed, config);
    for number in part.rows.start..part.rows.end {
        let row = row_of_part::<M>(part, number, scoring, summed, config);
        let (place, first) = (row.place, row.tile_q * tile.size);
        let (batch, head, head_kv) = (place.batch, place.head, place.head / group);
        let (from, end) = (row.tiles.start, row.tiles.end);
        let source = source::<F, N>(key, value, batch, head_kv);
        // Most rows have one tile, which is read, with room for two operands and `Matrix::ahead`, while the rows of the query and of the gradient are.
        let mut tile_kv = fetch_tile::<F, M, N>(
            source, scoring, place, from, end, row.tile_q, &mut ahead, config,
        );
        if tile_kv < end {
            let queries = side::<F, N>(query, batch, head, first, one);
            let queries =
                own_rows::<F, T, N>(queries, &mut unit, &mut operands, 1usize, dim_qk, matrix);
            let upstream = side::<F, N>(output_gradient, batch, head, first, one);
            let upstream =
                own_rows::<F, T, N>(upstream, &mut unit, &mut operands, 1usize, dim_v, matrix);
            let own = pairs(place, &mut unit, first, 0usize.runtime(), config);
            let logsumexp = load_statistics(statistics, own, LOGSUMEXP);
            let delta = load_statistics(statistics, own, DELTA);
            while tile_kv < end {
                let start = tile_kv * tile.size;
                put_tile::<F, T, N>(source, tile_kv, &ahead, &mut unit, &mut operands, config);
                let from = tile_kv + 1;
                tile_kv = fetch_tile::<F, M, N>(
                    source, scoring, place, from, end, row.tile_q, &mut ahead, config,
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
                let values = side::<F, N>(value, batch, head_kv, start, one);
                let mut gradients = weight_gradients::<F, M, T, N>(
                    &upstream,
                    values,
                    scoring,
                    scored.pairs,
                    &mut unit,
                    &mut operands,
                    matrix,
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
