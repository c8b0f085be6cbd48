//! The gradient of the query.
//!
//! As in the forward pass, a cube has a tile of queries of one head and takes the keys tile by tile.
//!
//! Source: Dao, "FlashAttention-2" (arXiv:2307.08691), algorithm 2, with the loops of the query's gradient apart from
//! the others: no sums of several cubes, so the same bits every time.

use cubecl::{ir::ElemType, prelude::*};

use crate::{
    dropout::dropped,
    score::{Config, Scoring, mark_seen, score},
    tile::{
        Four, add_weighted_rows, clear, clear_flags, dot_products, head_of_cube, rows_of, unit_of,
    },
    visible::{all_seen, has_visible, place, tile_is_visible, tiles_of_keys},
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
    let rows = comptime!(tile.rows);
    let vectors_per_unit = comptime!(tile.vectors_per_unit());
    let parts = comptime!(config.parts_qk);
    let unit = unit_of(tile);
    let heads = query.shape(1);
    let group = heads / key.shape(1);
    let len_q = query.shape(2);
    let len_kv = key.shape(2);
    let head_of_batch = head_of_cube(heads_of_batch);
    let batch = head_of_batch / heads;
    let head = head_of_batch % heads;
    let first = (len_q.div_ceil(tile.size) - 1 - CUBE_POS_X as usize) * tile.size;
    let row = first + unit.y * rows;
    let place = place::<M>(scoring, batch, head, len_q, len_kv);
    let queries = rows_of::<F, N>(query, batch, head, first);
    let upstream = rows_of::<F, N>(output_gradient, batch, head, first);
    let logsumexp = load_statistics(
        statistics,
        head_of_batch,
        row,
        len_q,
        LOGSUMEXP,
        false,
        tile,
    );
    let delta = load_statistics(statistics, head_of_batch, row, len_q, DELTA, false, tile);

    let mut pool = Shared::<[Four]>::new_slice(comptime!(tile.pool()));
    let mut seen = Shared::<[u32]>::new_slice(comptime!(tile.size));
    let mut sums = Array::<Four>::new(comptime!(vectors_per_unit * parts));
    clear(&mut sums, comptime!(vectors_per_unit * parts));

    let tiles = tiles_of_keys::<M>(scoring, place, first, config);
    for number in tiles.start..tiles.end {
        if has_visible::<M>(scoring, place, first / tile.size, number) {
            let start = number * tile.size;
            let column = start + unit.x * 4;
            let keys = rows_of::<F, N>(key, batch, head / group, start);
            let values = rows_of::<F, N>(value, batch, head / group, start);
            let mut scores = Array::<Four>::new(vectors_per_unit);
            let mut dsoftcap = Array::<Four>::new(vectors_per_unit);
            clear(&mut scores, vectors_per_unit);
            dot_products::<F, N>(
                query,
                queries,
                scoring.scale,
                key,
                keys,
                f32::new(1.0),
                &mut scores,
                &mut pool,
                unit,
                tile,
            );
            let visible = tile_is_visible::<M>(scoring, place, first, start, config);
            let all_seen = all_seen::<M>(scoring, visible);
            let hidden = score::<M>(
                &mut scores,
                &mut dsoftcap,
                scoring,
                place,
                row,
                column,
                visible,
                false,
                config,
            );
            weights(&mut scores, &hidden, &logsumexp, false, config);
            clear_flags(&mut seen, tile);

            let mut weight_gradients = Array::<Four>::new(vectors_per_unit);
            clear(&mut weight_gradients, vectors_per_unit);
            dot_products::<F, N>(
                output_gradient,
                upstream,
                f32::new(1.0),
                value,
                values,
                f32::new(1.0),
                &mut weight_gradients,
                &mut pool,
                unit,
                tile,
            );
            let dropped = dropped::<M>(scoring, place, row, column, false, config);
            score_gradients(
                &mut weight_gradients,
                &scores,
                &dsoftcap,
                &hidden,
                &dropped,
                scoring.keep_scale,
                &delta,
                true,
                false,
                config,
            );
            mark_seen(&hidden, &mut seen, unit, config);
            sync_cube();
            add_weighted_rows::<F, N>(
                &weight_gradients,
                key,
                keys,
                &seen,
                all_seen,
                &mut sums,
                parts,
                &mut pool,
                unit,
                tile,
            );
        }
    }

    let to = batch * gradient.stride(0) + head * gradient.stride(1);
    store_gradient::<F>(
        &sums,
        scoring.scale,
        gradient,
        to,
        row,
        len_q,
        unit.x * 4,
        comptime!(config.parts_qk),
        config,
    );
}

/// Writes a unit's part of a gradient, times `factor`.
#[cube]
pub(crate) fn store_gradient<F: Float>(
    sums: &Array<Four>,
    factor: f32,
    gradient: &mut Tensor<F>,
    to: usize,
    row: usize,
    end: usize,
    column: usize,
    #[comptime] parts: usize,
    #[comptime] config: Config,
) {
    let tile = comptime!(config.tile);
    let dim = gradient.shape(3);
    let stride = gradient.stride(2);
    #[unroll]
    for i in 0..comptime!(tile.rows) {
        if row + i < end {
            #[unroll]
            for part in 0..comptime!(parts * tile.groups()) {
                let four = sums[comptime!(i * parts * tile.groups() + part)];
                let group = comptime!(part % tile.groups());
                let skip = comptime!(part / tile.groups() * tile.size + tile.skip(group));
                #[unroll]
                for j in 0..4usize {
                    let at = comptime!(skip + j) + column;
                    if at < dim {
                        gradient[to + (row + i) * stride + at] =
                            F::cast_from(four.extract(j) * factor);
                    }
                }
            }
        }
    }
}
