//! The products with the rows of keys and values. Rows are not staged in shared memory: a cube uses each once.

use cubecl::prelude::*;

use super::shape::{KEYS, LANES, UNITS};
use crate::tile::Side;

/// Rows that a unit reads at a time: their reads do not wait for each other.
const AT_ONCE: usize = 4;

/// Stores each lane's partial dot products of queries and keys in shared memory: `[rows][LANES][KEYS]`, the rows being `queries` of
/// one head, then as many of the next.
#[cube]
pub(super) fn dot_products<F: Float, N: Size>(
    query: Side<'_, F, N>,
    key: Side<'_, F, N>,
    count: usize,
    pool: &mut Shared<[f32]>,
    #[comptime] rows: usize,
    #[comptime] queries: usize,
) {
    let (of_query, of_key) = (query.tensor, key.tensor);
    let size = of_key.vector_size().comptime();
    let lane = UNIT_POS as usize % LANES;
    let own_key = UNIT_POS as usize / LANES;
    let columns = key.dim / size;
    let last = key.end - 1;
    let keys = comptime!(UNITS / LANES);
    for round in 0..count.div_ceil(comptime!(keys * AT_ONCE)) {
        let first = round * comptime!(keys * AT_ONCE) + own_key;
        let mut dots = Array::<Vector<f32, N>>::new(comptime!(rows * AT_ONCE));
        #[unroll]
        for i in 0..comptime!(rows * AT_ONCE) {
            dots[i] = Vector::<f32, N>::new(0.0f32);
        }
        let mut column = lane;
        while column < columns {
            let mut read = Array::<Vector<f32, N>>::new(AT_ONCE);
            #[unroll]
            for k in 0..AT_ONCE {
                let row = (key.first + first + comptime!(k * keys)).min(last);
                let from = key.base + row * key.stride;
                read[k] = Vector::<f32, N>::cast_from(of_key[from / size + column]);
            }
            #[unroll]
            for i in 0..rows {
                let from = query.base
                    + comptime!(i / queries) * of_query.stride(1)
                    + comptime!(i % queries) * query.stride;
                let numbers = Vector::<f32, N>::cast_from(of_query[from / size + column])
                    * Vector::<f32, N>::new(query.factor);
                #[unroll]
                for k in 0..AT_ONCE {
                    let to = comptime!(i * AT_ONCE + k);
                    dots[to] = fma(numbers, read[k], dots[to]);
                }
            }
            column += LANES;
        }
        #[unroll]
        for i in 0..rows {
            #[unroll]
            for k in 0..AT_ONCE {
                let dot = dots[comptime!(i * AT_ONCE + k)];
                let mut sum = dot.extract(0usize);
                #[unroll]
                for j in 1..size {
                    sum += dot.extract(j);
                }
                let to = comptime!(i * LANES * KEYS + k * keys) + lane * KEYS + first;
                pool[to] = sum;
            }
        }
    }
}

/// Puts the weighted sums of the rows of a head into shared memory behind the weights, `[groups of units][rows][columns]`. No two groups
/// sum the same rows of values.
#[cube]
pub(super) fn weighted_rows<F: Float, N: Size>(
    value: Side<'_, F, N>,
    count: usize,
    pool: &mut Shared<[f32]>,
    #[comptime] units_per_row: usize,
    #[comptime] parts: usize,
    #[comptime] rows: usize,
) {
    let tensor = value.tensor;
    let size = tensor.vector_size().comptime();
    let groups = comptime!(UNITS / units_per_row);
    let column = UNIT_POS as usize % units_per_row;
    let group = UNIT_POS as usize / units_per_row;
    let last_column = value.dim / size - 1;
    let last = value.end - 1;
    let mut sums = Array::<Vector<f32, N>>::new(comptime!(rows * parts));
    #[unroll]
    for i in 0..comptime!(rows * parts) {
        sums[i] = Vector::<f32, N>::new(0.0f32);
    }
    for round in 0..count.div_ceil(comptime!(groups * AT_ONCE)) {
        let first = round * comptime!(groups * AT_ONCE) + group;
        #[unroll]
        for part in 0..parts {
            let column = (comptime!(part * units_per_row) + column).min(last_column);
            let mut read = Array::<Vector<f32, N>>::new(AT_ONCE);
            #[unroll]
            for k in 0..AT_ONCE {
                let row = (value.first + first + comptime!(k * groups)).min(last);
                let from = value.base + row * value.stride;
                read[k] = Vector::<f32, N>::cast_from(tensor[from / size + column]);
            }
            #[unroll]
            for i in 0..rows {
                #[unroll]
                for k in 0..AT_ONCE {
                    let weight = pool[comptime!(i * KEYS + k * groups) + first];
                    let to = comptime!(i * parts + part);
                    let sum = fma(Vector::<f32, N>::new(weight), read[k], sums[to]);
                    // A NaN weight is visible.
                    let hidden = weight < f32::new(0.0);
                    if !hidden {
                        sums[to] = sum;
                    }
                }
            }
        }
    }
    #[unroll]
    for i in 0..rows {
        #[unroll]
        for part in 0..parts {
            let to = comptime!(KEYS * rows)
                + (group * rows + i) * comptime!(parts * units_per_row * size)
                + (comptime!(part * units_per_row) + column) * size;
            #[unroll]
            for j in 0..size {
                pool[to + j] = sums[comptime!(i * parts + part)].extract(j);
            }
        }
    }
}
