//! Output and logsumexp.
//!
//! A cube has a tile of queries of one head and takes the keys tile by tile, with the softmax of what it has seen so far.
//!
//! Source: Dao, "FlashAttention-2" (arXiv:2307.08691), algorithm 1.

use cubecl::{ir::ElemType, prelude::*};

use crate::{
    dropout::{drop_weights, dropped},
    score::{Config, LEAST, Scoring, mark_seen, score},
    tile::{
        Four, add_weighted_rows, clear, clear_flags, dot_products, head_of_cube, rows_of, unit_of,
    },
    visible::{all_seen, has_visible, place, tile_is_visible, tiles_of_keys},
};

#[cube(launch_unchecked)]
pub(crate) fn forward<F: Float, M: Numeric, N: Size>(
    query: &Tensor<Vector<F, N>>,
    key: &Tensor<Vector<F, N>>,
    value: &Tensor<Vector<F, N>>,
    sinks: &ComptimeOption<OwnedTensor<f32>>,
    scoring: &Scoring<M>,
    output: &mut Tensor<F>,
    logsumexp: &mut Tensor<f32>,
    minus_infinity: f32,
    heads_of_batch: u32,
    #[comptime] config: Config,
    #[define(F, M)] _types: [ElemType; 2],
) {
    let tile = comptime!(config.tile);
    let rows = comptime!(tile.rows);
    let parts = comptime!(config.parts_v);
    let quads = comptime!(tile.size / 4);
    let groups = comptime!(tile.groups());
    let vectors_per_unit = comptime!(tile.vectors_per_unit());
    let unit = unit_of(tile);
    let heads = query.shape(1);
    let group = heads / key.shape(1);
    let len_q = query.shape(2);
    let len_kv = key.shape(2);
    let dim_v = value.shape(3);
    let head_of_batch = head_of_cube(heads_of_batch);
    let batch = head_of_batch / heads;
    let head = head_of_batch % heads;
    // With a causal mask the last tile has the most keys: it goes first.
    let first = (len_q.div_ceil(tile.size) - 1 - CUBE_POS_X as usize) * tile.size;
    let place = place::<M>(scoring, batch, head, len_q, len_kv);
    let queries = rows_of::<F, N>(query, batch, head, first);

    let mut pool = Shared::<[Four]>::new_slice(comptime!(tile.pool()));
    let mut seen = Shared::<[u32]>::new_slice(comptime!(tile.size));
    let mut sums = Array::<Four>::new(comptime!(vectors_per_unit * parts));
    clear(&mut sums, comptime!(vectors_per_unit * parts));
    let mut maxima = Array::<f32>::new(rows);
    let mut totals = Array::<f32>::new(rows);
    #[unroll]
    for i in 0..rows {
        maxima[i] = f32::new(LEAST);
        totals[i] = f32::new(0.0);
    }

    let tiles = tiles_of_keys::<M>(scoring, place, first, config);
    for number in tiles.start..tiles.end {
        if has_visible::<M>(scoring, place, first / tile.size, number) {
            let start = number * tile.size;
            let keys = rows_of::<F, N>(key, batch, head / group, start);
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

            let row = first + unit.y * rows;
            let column = start + unit.x * 4;
            let visible = tile_is_visible::<M>(scoring, place, first, start, config);
            let all_seen = all_seen::<M>(scoring, visible);
            let bits = score::<M>(
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
            // With tiles of size 32 the maxima overlap the keys: wait until all units have read them.
            if comptime!(tile.scores() < 2 * tile.operand()) {
                sync_cube();
            }
            // Maxima of the unit's columns, in the part of the pool that values will fill.
            #[unroll]
            for four in 0..comptime!(rows / 4) {
                let mut top = Four::new(0.0f32);
                #[unroll]
                for i in 0..4usize {
                    let first = comptime!((four * 4 + i) * groups);
                    let mut of_row = scores[first];
                    #[unroll]
                    for group in 1..groups {
                        of_row = of_row.max(scores[comptime!(first + group)]);
                    }
                    let pair = of_row.extract(0usize).max(of_row.extract(1usize));
                    let other = of_row.extract(2usize).max(of_row.extract(3usize));
                    top.insert(i, pair.max(other));
                }
                pool[comptime!(tile.scores())
                    + (unit.y * comptime!(rows / 4) + four) * quads
                    + unit.x] = top;
            }
            clear_flags(&mut seen, tile);
            sync_cube();
            mark_seen(&bits, &mut seen, unit, config);
            #[unroll]
            for four in 0..comptime!(rows / 4) {
                let from = comptime!(tile.scores()) + (unit.y * comptime!(rows / 4) + four) * quads;
                let mut top = pool[from];
                for x in 1..comptime!(tile.across()) {
                    top = top.max(pool[from + x]);
                }
                #[unroll]
                for i in 0..4usize {
                    let row = comptime!(four * 4 + i);
                    let maximum = maxima[row].max(top.extract(i));
                    let rescale = (maxima[row] - maximum).exp();
                    maxima[row] = maximum;
                    totals[row] *= rescale;
                    #[unroll]
                    for group in 0..groups {
                        let index = comptime!(row * groups + group);
                        let mut weights = (scores[index] - Four::new(maximum)).exp();
                        #[unroll]
                        for j in 0..4usize {
                            let hidden = bits[group] & comptime!(1u32 << (row * 4 + j) as u32) != 0;
                            weights.insert(j, select(hidden, f32::new(0.0), weights.extract(j)));
                        }
                        scores[index] = weights;
                        totals[row] += (weights.extract(0usize) + weights.extract(1usize))
                            + (weights.extract(2usize) + weights.extract(3usize));
                    }
                    #[unroll]
                    for part in 0..comptime!(parts * groups) {
                        sums[comptime!(row * parts * groups + part)] *= Four::new(rescale);
                    }
                }
            }
            let dropped = dropped::<M>(scoring, place, row, column, false, config);
            drop_weights::<M>(&mut scores, &dropped, scoring, config);

            let values = rows_of::<F, N>(value, batch, head / group, start);
            add_weighted_rows::<F, N>(
                &scores, value, values, &seen, all_seen, &mut sums, parts, &mut pool, unit, tile,
            );
        }
    }

    // The totals of the units of a row.
    sync_cube();
    #[unroll]
    for four in 0..comptime!(rows / 4) {
        let mut total = Four::new(0.0f32);
        #[unroll]
        for i in 0..4usize {
            total.insert(i, totals[comptime!(four * 4 + i)]);
        }
        pool[(unit.y * comptime!(rows / 4) + four) * quads + unit.x] = total;
    }
    sync_cube();
    #[unroll]
    for four in 0..comptime!(rows / 4) {
        let from = (unit.y * comptime!(rows / 4) + four) * quads;
        let mut total = pool[from];
        for x in 1..comptime!(tile.across()) {
            total += pool[from + x];
        }
        #[unroll]
        for i in 0..4usize {
            let index = comptime!(four * 4 + i);
            let row = first + unit.y * rows + index;
            if row < len_q {
                let result =
                    normalized(maxima[index], total.extract(i), sinks, head, minus_infinity);
                let to =
                    batch * output.stride(0) + head * output.stride(1) + row * output.stride(2);
                #[unroll]
                for part in 0..comptime!(parts * groups) {
                    let four = sums[comptime!(index * parts * groups + part)];
                    let skip = comptime!(part / groups * tile.size + tile.skip(part % groups));
                    #[unroll]
                    for j in 0..4usize {
                        let column = comptime!(skip + j) + unit.x * 4;
                        if column < dim_v {
                            output[to + column] = F::cast_from(select(
                                result.empty,
                                f32::new(0.0),
                                four.extract(j) * result.factor,
                            ));
                        }
                    }
                }
                if unit.x == 0 {
                    logsumexp[head_of_batch * len_q + row] = result.logsumexp;
                }
            }
        }
    }
}

/// What ends a row.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct Normalized {
    /// Factor on the sums.
    pub(crate) factor: f32,
    /// Whether the row sees nothing: its output is 0, whatever the sums.
    pub(crate) empty: bool,
    pub(crate) logsumexp: f32,
}

/// From the largest score of a row and the sum of its weights relative to that, with the sink of its head.
#[cube]
pub(crate) fn normalized(
    maximum: f32,
    sum: f32,
    sinks: &ComptimeOption<OwnedTensor<f32>>,
    head: usize,
    minus_infinity: f32,
) -> Normalized {
    let mut maximum = maximum;
    let mut sum = sum;
    let mut rescale = f32::new(1.0);
    #[comptime]
    match sinks {
        ComptimeOption::Some(sinks) => {
            let sink = sinks[head];
            let top = maximum.max(sink);
            rescale = (maximum - top).exp();
            sum = sum * rescale + (sink - top).exp();
            maximum = top;
        }
        ComptimeOption::None => {}
    };
    // A NaN is not 0.
    let empty = sum == f32::new(0.0);
    Normalized {
        factor: select(empty, f32::new(0.0), rescale / sum),
        empty,
        logsumexp: select(empty, minus_infinity, maximum + sum.ln()),
    }
}
