//! Weights and gradients of scores, recomputed in the backward pass.

use cubecl::prelude::*;

use crate::{score::Config, tile::Four};

/// Statistics of the queries of a unit: in across form those of its four columns, otherwise those of its rows.
#[cube]
pub(crate) fn load_statistics(
    statistics: &Tensor<f32>,
    head: usize,
    first: usize,
    len: usize,
    #[comptime] count: usize,
) -> Array<f32> {
    let mut numbers = Array::<f32>::new(count);
    #[unroll]
    for i in 0..count {
        numbers[i] = f32::new(0.0);
        if first + i < len {
            numbers[i] = statistics[head * len + first + i];
        }
    }
    numbers
}

/// Turns scores into weights, exactly 0 where hidden.
#[cube]
pub(crate) fn weights(
    scores: &mut Array<Four>,
    hidden: u32,
    logsumexp: &Array<f32>,
    #[comptime] across: bool,
    #[comptime] config: Config,
) {
    #[unroll]
    for i in 0..comptime!(config.tile.rows) {
        let mut row = scores[i];
        #[unroll]
        for j in 0..4usize {
            let bit = comptime!(1u32 << (i * 4 + j) as u32);
            let weight = (row.extract(j) - logsumexp[comptime!(if across { j } else { i })]).exp();
            row.insert(j, select(hidden & bit != 0, f32::new(0.0), weight));
        }
        scores[i] = row;
    }
}

/// Turns what the values receive into the gradients of the scores, exactly 0 where hidden: before the softcap, or after it.
#[cube]
pub(crate) fn score_gradients(
    received: &mut Array<Four>,
    weights: &Array<Four>,
    slopes: &Array<Four>,
    hidden: u32,
    dropped: u32,
    kept: f32,
    terms: &Array<f32>,
    #[comptime] before_softcap: bool,
    #[comptime] across: bool,
    #[comptime] config: Config,
) {
    #[unroll]
    for i in 0..comptime!(config.tile.rows) {
        let mut row = received[i];
        #[unroll]
        for j in 0..4usize {
            let bit = comptime!(1u32 << (i * 4 + j) as u32);
            let mut number = row.extract(j);
            if comptime!(config.dropout) {
                number = select(dropped & bit != 0, f32::new(0.0), number * kept);
            }
            let mut gradient =
                weights[i].extract(j) * (number - terms[comptime!(if across { j } else { i })]);
            if comptime!(config.softcap && before_softcap) {
                gradient *= slopes[i].extract(j);
            }
            row.insert(j, select(hidden & bit != 0, f32::new(0.0), gradient));
        }
        received[i] = row;
    }
}
