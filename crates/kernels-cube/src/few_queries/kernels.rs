//! Partial results over [`KEYS`] keys, which [`split`](crate::split) merges.

use cubecl::{ir::ElemType, prelude::*};

use super::{
    products::{dot_products, weighted_rows},
    shape::{KEYS, LANES, UNITS, pool},
};
use crate::{
    dropout::{dropped, zero_dropped},
    score::{largest_of, score, sum_of, zero_where},
    scoring::{Config, Scoring},
    site::site_of_heads,
    tile::{Four, side},
    visible::{Pairs, has_visible, place, tiles_of_keys},
};

/// Numbers that a unit reduces in one step, and groups of them.
const REDUCED: usize = 8;
const _: () = assert!(REDUCED * REDUCED == UNITS);

/// Writes the sums of values, the largest score and the sum of weights of the queries over [`KEYS`] keys:
/// `sums` is `[splits · batch, heads_q, len_q, dim_v]`, `statistics` `[splits · batch, heads_q, len_q, 2]`.
///
/// `units_per_row` units share a row of values, `parts` vectors each.
#[cube(launch_unchecked)]
pub(crate) fn partial<F: Float, M: Numeric, N: Size>(
    query: &Tensor<Vector<F, N>>,
    key: &Tensor<Vector<F, N>>,
    value: &Tensor<Vector<F, N>>,
    scoring: &Scoring<M>,
    sums: &mut Tensor<f32>,
    statistics: &mut Tensor<f32>,
    #[comptime] units_per_row: usize,
    #[comptime] parts: usize,
    #[comptime] config: Config,
    #[define(F, M)] _types: [ElemType; 2],
) {
    let rows = comptime!(config.tile.rows);
    let queries = comptime!(config.queries());
    let unit = UNIT_POS as usize;
    let heads = query.shape(1);
    let len_kv = key.shape(2);
    let dim_v = value.shape(3);
    let own = site_of_heads::<F, N>(query, key, config);
    let (batch, head_kv, head) = (own.batch, own.head_kv, own.head);
    let head_of_batch = batch * heads + head;
    let number = CUBE_POS_X as usize;
    let start = number * KEYS;
    let place = place::<M>(scoring, batch, head, query.shape(2), len_kv);
    let range = tiles_of_keys::<M>(scoring, place, 0usize, config);
    // Lengths hide the keys of this cube from here on.
    let mut count = ((place.length - start as i32).max(0i32) as usize).min(KEYS);
    let seen = has_visible::<M>(scoring, place, 0usize, number, config);
    if number < range.start || number >= range.end || !seen {
        count = 0usize.runtime();
    }

    let mut pool = Shared::<[f32]>::new_slice(comptime!(pool(rows)));
    let own = side::<F, N>(query, batch, head, 0usize, scoring.scale);
    let keys = side::<F, N>(key, batch, head_kv, start, f32::new(1.0));
    dot_products(own, keys, count, &mut pool, rows, queries);
    sync_cube();
    let mut scores = Array::<Four>::new(rows);
    let mut dsoftcap = Array::<Four>::new(rows);
    #[unroll]
    for i in 0..rows {
        let mut of_row = Four::new(0.0f32);
        #[unroll]
        for j in 0..4usize {
            let from = comptime!(i * LANES * KEYS + j) + unit * 4;
            let mut sum = pool[from];
            #[unroll]
            for lane in 1..LANES {
                sum += pool[from + comptime!(lane * KEYS)];
            }
            of_row.insert(j, sum);
        }
        scores[i] = of_row;
    }

    let pairs = Pairs {
        place,
        row: 0usize.runtime(),
        column: start + unit * 4,
        config,
    };
    let bits = score::<M>(&mut scores, &mut dsoftcap, scoring, pairs, false.runtime());
    let mut maxima = Array::<f32>::new(rows);
    #[unroll]
    for i in 0..rows {
        maxima[i] = largest_of(scores[i]);
    }
    reduce(&mut maxima, &mut pool, rows, true);
    let mut totals = Array::<f32>::new(rows);
    #[unroll]
    for i in 0..rows {
        let weights = (scores[i] - Four::new(maxima[i])).exp();
        let weights = zero_where(weights, bits[0], comptime!(i * 4));
        scores[i] = weights;
        totals[i] = sum_of(weights);
    }
    reduce(&mut totals, &mut pool, rows, false);
    let dropped = dropped::<M>(scoring, pairs);
    zero_dropped(&mut scores, &dropped, config);

    // Weights are not negative: −1 marks a hidden key, whose value may be NaN.
    sync_cube();
    #[unroll]
    for i in 0..rows {
        #[unroll]
        for j in 0..4usize {
            let hidden = bits[0] & comptime!(1u32 << (i * 4 + j) as u32) != 0;
            pool[comptime!(i * KEYS + j) + unit * 4] =
                select(hidden, f32::new(-1.0), scores[i].extract(j));
        }
    }
    sync_cube();
    let values = side::<F, N>(value, batch, head_kv, start, f32::new(1.0));
    weighted_rows(values, count, &mut pool, units_per_row, parts, rows);
    sync_cube();

    let size = value.vector_size().comptime();
    let first_row = (number * query.shape(0) * heads + head_of_batch) * queries;
    let mut at = unit;
    while at < rows * dim_v {
        let (row, column) = (at / dim_v, at % dim_v);
        let mut sum = f32::new(0.0);
        #[unroll]
        for other in 0..comptime!(UNITS / units_per_row) {
            sum += pool[(comptime!(KEYS * rows)
                + (other * rows + row) * comptime!(parts * units_per_row * size))
                + column];
        }
        sums[(first_row + row) * dim_v + column] = sum;
        at += UNITS;
    }
    if unit == 0 {
        #[unroll]
        for i in 0..rows {
            let to = (first_row + i) * 2;
            statistics[to] = maxima[i];
            statistics[to + 1] = totals[i];
        }
    }
}

/// Reduces `rows` numbers over all units to the largest or to the sum, which every unit gets. Begins with a barrier.
#[cube]
fn reduce(
    numbers: &mut Array<f32>,
    pool: &mut Shared<[f32]>,
    #[comptime] rows: usize,
    #[comptime] largest: bool,
) {
    let unit = UNIT_POS as usize;
    #[unroll]
    for step in 0..2usize {
        // The first `reducing` units have numbers, in groups of `REDUCED`.
        let reducing = comptime!(if step == 0 { UNITS } else { REDUCED });
        let group = select(step == 0, unit % REDUCED * REDUCED, 0usize);
        sync_cube();
        if unit < reducing {
            #[unroll]
            for i in 0..rows {
                pool[comptime!(i * UNITS) + unit] = numbers[i];
            }
        }
        sync_cube();
        #[unroll]
        for i in 0..rows {
            let from = comptime!(i * UNITS) + group;
            let mut result = pool[from];
            #[unroll]
            for other in 1..REDUCED {
                let number = pool[from + other];
                if comptime!(largest) {
                    result = result.max(number);
                } else {
                    result += number;
                }
            }
            numbers[i] = result;
        }
    }
}
