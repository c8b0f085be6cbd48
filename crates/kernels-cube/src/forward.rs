//! Output and logsumexp.
//!
//! A cube has a tile of queries of one head and takes the keys tile by tile, with an online softmax.
//!
//! Source: Dao, "FlashAttention-2" (arXiv:2307.08691), algorithm 1.

use cubecl::{ir::ElemType, prelude::*};

use crate::{
    dropout::{dropped, keep_scale, zero_dropped},
    products::add_weighted_rows,
    score::{largest_of, mark_seen, scored, sum_of, zero_where},
    scoring::{Config, Scoring, lowest_finite},
    share::{batch_of_results, shared},
    site::site,
    store::store_rows,
    tile::{Four, Unit, clear_flags, side, unit, zeros},
    visible::{has_visible, pairs, tiles_of_keys},
};

#[cfg_attr(test, cube(launch_unchecked, create_dummy_kernel))]
#[cfg_attr(not(test), cube(launch_unchecked))]
pub(crate) fn forward<F: Float, M: Numeric, O: Float, N: Size>(
    query: &Tensor<Vector<F, N>>,
    key: &Tensor<Vector<F, N>>,
    value: &Tensor<Vector<F, N>>,
    sinks: &ComptimeOption<OwnedTensor<f32>>,
    scoring: &Scoring<M>,
    output: &mut Tensor<O>,
    logsumexp: &mut Tensor<f32>,
    minus_infinity: f32,
    #[comptime] config: Config,
    #[define(F, M, O)] _types: [ElemType; 3],
) {
    let tile = comptime!(config.tile);
    let rows = comptime!(tile.rows);
    let parts = comptime!(config.parts_v);
    let groups = comptime!(tile.groups());
    let site = site::<F, M, N>(query, key, scoring, config);
    let (place, first) = (site.place, site.first);
    let (batch, head) = (place.batch, place.head);
    let one = f32::new(1.0);
    let mut unit = unit(tile);
    let mut sums = zeros(comptime!(tile.vectors_per_unit() * parts));
    let mut maxima = Array::<f32>::new(rows);
    let mut totals = Array::<f32>::new(rows);
    #[unroll]
    for i in 0..rows {
        maxima[i] = lowest_finite();
        totals[i] = f32::new(0.0);
    }

    let tiles = tiles_of_keys::<M>(scoring, place, first, config);
    let tiles = shared(tiles, site.share, 0usize, 1usize, config);
    for number in tiles.start..tiles.end {
        if has_visible::<M>(scoring, place, first / tile.size, number, config) {
            let start = number * tile.size;
            let keys = side::<F, N>(key, batch, site.head_kv, start, one);
            let mut scored =
                scored::<F, M, N>(site.queries, keys, scoring, place, &mut unit, config);
            // With tiles of size 32 the maxima overlap the keys: wait until all units have read them.
            if comptime!(tile.scores() < 2 * tile.operand()) {
                sync_cube();
            }
            let mut tops = Array::<f32>::new(rows);
            #[unroll]
            for row in 0..rows {
                let mut of_row = scored.scores[comptime!(row * groups)];
                #[unroll]
                for group in 1..groups {
                    of_row = of_row.max(scored.scores[comptime!(row * groups + group)]);
                }
                tops[row] = largest_of(of_row);
            }
            clear_flags(&mut unit);
            // The maxima go where the values will be.
            reduce_rows(&mut tops, &mut unit, comptime!(tile.scores()), true);
            mark_seen(&scored.hidden, &mut unit);
            #[unroll]
            for row in 0..rows {
                let maximum = maxima[row].max(tops[row]);
                let rescale = (maxima[row] - maximum).exp();
                maxima[row] = maximum;
                totals[row] *= rescale;
                #[unroll]
                for group in 0..groups {
                    let index = comptime!(row * groups + group);
                    let weights = (scored.scores[index] - Four::new(maximum)).exp();
                    let (word, first) = comptime!(tile.flags(row, group));
                    let weights = zero_where(weights, scored.hidden[word], first);
                    scored.scores[index] = weights;
                    totals[row] += sum_of(weights);
                }
                #[unroll]
                for part in 0..comptime!(parts * groups) {
                    sums[comptime!(row * parts * groups + part)] *= Four::new(rescale);
                }
            }
            let dropped = dropped::<M>(scoring, scored.pairs);
            zero_dropped(&mut scored.scores, &dropped, config);

            let values = side::<F, N>(value, batch, site.head_kv, start, one);
            add_weighted_rows::<F, N>(
                &scored.scores,
                values,
                scored.all_seen,
                &mut sums,
                &mut unit,
                parts,
            );
        }
    }

    let to_batch = batch_of_results(site.share, batch, query.shape(0), config);
    sync_cube();
    reduce_rows(&mut totals, &mut unit, 0usize, false);
    let mut own = pairs(place, &mut unit, first, 0usize.runtime(), config);
    own.place.batch = to_batch;
    let kept = keep_scale::<M>(scoring, config);
    #[unroll]
    for index in 0..rows {
        let (maximum, total) = (maxima[index], totals[index]);
        let result = ended(maximum, total, sinks, head, minus_infinity, kept, config);
        #[unroll]
        for part in 0..comptime!(parts * groups) {
            let at = comptime!(index * parts * groups + part);
            sums[at] *= Four::new(result.factor);
            if result.empty {
                sums[at] = Four::new(0.0f32);
            }
        }
        let row = own.row + index;
        if unit.x == 0 && row < place.len_q {
            let at = (to_batch * query.shape(1) + head) * place.len_q + row;
            store_statistics(logsumexp, at, result, total, config);
        }
    }
    store_rows::<O>(&sums, one, output, own, 0usize, parts);
}

/// Reduces the units' `numbers` of each row of the tile to the largest or to the sum, in the pool from `from` on. Has a barrier inside.
#[cube]
pub(crate) fn reduce_rows(
    numbers: &mut Array<f32>,
    unit: &mut Unit,
    #[comptime] from: usize,
    #[comptime] largest: bool,
) {
    let tile = comptime!(unit.tile);
    let quads = comptime!(tile.size / 4);
    let fours = comptime!(tile.rows / 4);
    #[unroll]
    for four in 0..fours {
        let mut of_unit = Four::new(0.0f32);
        #[unroll]
        for i in 0..4usize {
            of_unit.insert(i, numbers[comptime!(four * 4 + i)]);
        }
        unit.pool[from + (unit.y * fours + four) * quads + unit.x] = of_unit;
    }
    sync_cube();
    #[unroll]
    for four in 0..fours {
        let first = from + (unit.y * fours + four) * quads;
        let mut result = unit.pool[first];
        for x in 1..comptime!(tile.across()) {
            let number = unit.pool[first + x];
            if comptime!(largest) {
                result = result.max(number);
            } else {
                result += number;
            }
        }
        #[unroll]
        for i in 0..4usize {
            numbers[comptime!(four * 4 + i)] = result.extract(i);
        }
    }
}

/// How a row's sums become its output, and its logsumexp.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct Normalized {
    /// Factor on the sums, that of kept weights included.
    pub(crate) factor: f32,
    /// Whether the row sees no key: its output is 0, whatever the sums.
    pub(crate) empty: bool,
    pub(crate) logsumexp: f32,
}

/// [`normalized`]; in a split, the sums as they are and the maximum that they are relative to.
#[cube]
pub(crate) fn ended(
    maximum: f32,
    sum: f32,
    sinks: &ComptimeOption<OwnedTensor<f32>>,
    head: usize,
    minus_infinity: f32,
    kept: f32,
    #[comptime] config: Config,
) -> Normalized {
    let mut result = normalized(maximum, sum, sinks, head, minus_infinity, kept);
    if comptime!(config.split) {
        result.factor = f32::new(1.0);
        result.logsumexp = maximum;
    }
    result
}

/// Writes the logsumexp of row `at`; in a split, the two statistics that [`Call::merge`](crate::call::Call::merge) reads.
#[cube]
pub(crate) fn store_statistics(
    logsumexp: &mut Tensor<f32>,
    at: usize,
    result: Normalized,
    total: f32,
    #[comptime] config: Config,
) {
    if comptime!(config.split) {
        logsumexp[2 * at] = result.logsumexp;
        logsumexp[2 * at + 1] = total;
    } else {
        logsumexp[at] = result.logsumexp;
    }
}

/// Normalizes a row, with the sink of its head: `maximum` was subtracted from its scores, `sum` is the sum of its weights, `kept` is the factor on those
/// that dropout keeps.
#[cube]
pub(crate) fn normalized(
    maximum: f32,
    sum: f32,
    sinks: &ComptimeOption<OwnedTensor<f32>>,
    head: usize,
    minus_infinity: f32,
    kept: f32,
) -> Normalized {
    let mut maximum = maximum;
    let mut sum = sum;
    let mut rescale = f32::new(1.0);
    #[comptime]
    if let ComptimeOption::Some(sinks) = sinks {
        let sink = sinks[head];
        let top = maximum.max(sink);
        rescale = (maximum - top).exp();
        sum = sum * rescale + (sink - top).exp();
        maximum = top;
    }
    // With a NaN sum the row is not empty.
    let empty = sum == f32::new(0.0);
    Normalized {
        factor: select(empty, f32::new(0.0), kept * (rescale / sum)),
        empty,
        logsumexp: select(empty, minus_infinity, maximum + sum.ln()),
    }
}
