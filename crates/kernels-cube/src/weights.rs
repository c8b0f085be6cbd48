//! Weights and gradients of scores, recomputed in the backward pass.

use cubecl::prelude::*;

use crate::{
    score::Config,
    tile::{Four, Tile},
};

/// Indices of the two statistics that [`row_statistics`](crate::row_statistics::row_statistics) writes.
pub(crate) const LOGSUMEXP: usize = 0;
pub(crate) const DELTA: usize = 1;

/// A number of each of the queries of a unit from `first` on: its rows or, with `keys_in_rows` as in [`score`](crate::score::score), its columns.
#[cube]
pub(crate) fn load_statistics(
    statistics: &Tensor<f32>,
    head: usize,
    first: usize,
    len: usize,
    #[comptime] number: usize,
    #[comptime] keys_in_rows: bool,
    #[comptime] tile: Tile,
) -> Array<f32> {
    let count = comptime!(if keys_in_rows {
        tile.columns
    } else {
        tile.rows
    });
    let head = number * statistics.shape(1) * statistics.shape(2) + head;
    let mut numbers = Array::<f32>::new(count);
    #[unroll]
    for i in 0..count {
        let query = first
            + comptime!(if keys_in_rows {
                tile.skip(i / 4) + i % 4
            } else {
                i
            });
        numbers[i] = f32::new(0.0);
        if query < len {
            numbers[i] = statistics[head * len + query];
        }
    }
    numbers
}

/// Turns scores into weights, exactly 0 where hidden.
#[cube]
pub(crate) fn weights(
    scores: &mut Array<Four>,
    hidden: &Array<u32>,
    logsumexp: &Array<f32>,
    #[comptime] keys_in_rows: bool,
    #[comptime] config: Config,
) {
    let groups = comptime!(config.tile.groups());
    #[unroll]
    for index in 0..comptime!(config.tile.vectors_per_unit()) {
        let (i, group) = comptime!((index / groups, index % groups));
        let mut row = scores[index];
        #[unroll]
        for j in 0..4usize {
            let bit = comptime!(1u32 << (i * 4 + j) as u32);
            let query = comptime!(if keys_in_rows { group * 4 + j } else { i });
            let weight = (row.extract(j) - logsumexp[query]).exp();
            row.insert(j, select(hidden[group] & bit != 0, f32::new(0.0), weight));
        }
        scores[index] = row;
    }
}

/// Turns the gradients of the weights into those of the scores, exactly 0 where hidden: before the softcap, or after it.
#[cube]
pub(crate) fn score_gradients(
    weight_gradients: &mut Array<Four>,
    weights: &Array<Four>,
    dsoftcap: &Array<Four>,
    hidden: &Array<u32>,
    dropped: &Array<u32>,
    keep_scale: f32,
    delta: &Array<f32>,
    #[comptime] before_softcap: bool,
    #[comptime] keys_in_rows: bool,
    #[comptime] config: Config,
) {
    let groups = comptime!(config.tile.groups());
    #[unroll]
    for index in 0..comptime!(config.tile.vectors_per_unit()) {
        let (i, group) = comptime!((index / groups, index % groups));
        let mut row = weight_gradients[index];
        #[unroll]
        for j in 0..4usize {
            let bit = comptime!(1u32 << (i * 4 + j) as u32);
            let query = comptime!(if keys_in_rows { group * 4 + j } else { i });
            let mut number = row.extract(j);
            if comptime!(config.dropout) {
                let dropped = dropped[group] & bit != 0;
                number = select(dropped, f32::new(0.0), number * keep_scale);
            }
            let mut gradient = weights[index].extract(j) * (number - delta[query]);
            if comptime!(config.softcap && before_softcap) {
                gradient *= dsoftcap[index].extract(j);
            }
            let hidden = hidden[group] & bit != 0;
            row.insert(j, select(hidden, f32::new(0.0), gradient));
        }
        weight_gradients[index] = row;
    }
}
