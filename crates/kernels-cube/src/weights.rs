//! Weights and gradients of scores, recomputed in the backward pass.

use cubecl::prelude::*;

use crate::{
    dropout::drop_weights,
    products::dot_products,
    score::{Scored, sum_of, zero_hidden},
    scoring::{Config, Scoring},
    tile::{Four, Side, Tile, Unit, zeros},
    visible::Pairs,
};

/// Indices of the two statistics that [`row_statistics`](crate::row_statistics::row_statistics) writes.
pub(crate) const LOGSUMEXP: usize = 0;
pub(crate) const DELTA: usize = 1;

/// Statistic `number` of each query of a unit: of its rows, or of its columns if keys are in rows.
#[cube]
pub(crate) fn load_statistics(
    statistics: &Tensor<f32>,
    pairs: Pairs,
    #[comptime] number: usize,
) -> Array<f32> {
    let tile = comptime!(pairs.config.tile);
    let keys_in_rows = comptime!(pairs.config.keys_in_rows);
    let count = comptime!(if keys_in_rows {
        tile.columns
    } else {
        tile.rows
    });
    let (heads, len) = (statistics.shape(2), pairs.place.len_q);
    let first = select(keys_in_rows, pairs.column, pairs.row);
    let head = (number * statistics.shape(1) + pairs.place.batch) * heads + pairs.place.head;
    let mut numbers = Array::<f32>::new(count);
    #[unroll]
    for i in 0..count {
        let query = first
            + comptime!(if keys_in_rows {
                tile.skip(i / 4) + i % 4
            } else {
                i
            });
        // Queries beyond the last are hidden.
        numbers[i] = statistics[head * len + query.min(len - 1)];
    }
    numbers
}

/// Turns scores into weights, exactly 0 where hidden.
#[cube]
pub(crate) fn weights(scored: &mut Scored, logsumexp: &Array<f32>) {
    let keys_in_rows = comptime!(scored.pairs.config.keys_in_rows);
    let tile = comptime!(scored.pairs.config.tile);
    let groups = comptime!(tile.groups());
    #[unroll]
    for index in 0..comptime!(tile.vectors_per_unit()) {
        let (i, group) = comptime!((index / groups, index % groups));
        let mut row = scored.scores[index];
        #[unroll]
        for j in 0..4usize {
            let query = comptime!(if keys_in_rows { group * 4 + j } else { i });
            row.insert(j, (row.extract(j) - logsumexp[query]).exp());
        }
        scored.scores[index] = row;
    }
    let config = comptime!(scored.pairs.config);
    zero_hidden(
        &mut scored.scores,
        &scored.hidden,
        scored.any_hidden,
        config,
    );
}

/// The gradients of the weights, after dropout: the dot products of `left` and `right`, which are the gradient of the output and the values, in
/// either order.
#[cube]
pub(crate) fn weight_gradients<F: Float, M: Numeric, N: Size>(
    left: Side<'_, F, N>,
    right: Side<'_, F, N>,
    dropped: &Array<u32>,
    scoring: &Scoring<M>,
    unit: &mut Unit,
    #[comptime] config: Config,
) -> Array<Four> {
    let mut gradients = zeros(comptime!(config.tile.vectors_per_unit()));
    dot_products(left, right, &mut gradients, unit);
    drop_weights::<M>(&mut gradients, dropped, scoring, config);
    gradients
}

/// Zeros for [`add_deltas`].
#[cube]
pub(crate) fn no_deltas(#[comptime] tile: Tile) -> Array<f32> {
    let mut deltas = Array::<f32>::new(comptime!(tile.rows));
    #[unroll]
    for i in 0..comptime!(tile.rows) {
        deltas[i] = f32::new(0.0);
    }
    deltas
}

/// Adds a tile's products of weights and their gradients to those of each row of a unit, whose sum is delta.
#[cube]
pub(crate) fn add_deltas(weights: &Scored, gradients: &Array<Four>, deltas: &mut Array<f32>) {
    let config = comptime!(weights.pairs.config);
    let tile = comptime!(config.tile);
    let groups = comptime!(tile.groups());
    let mut of_pairs = Array::<Four>::new(comptime!(tile.vectors_per_unit()));
    #[unroll]
    for index in 0..comptime!(tile.vectors_per_unit()) {
        of_pairs[index] = weights.scores[index] * gradients[index];
    }
    zero_hidden(&mut of_pairs, &weights.hidden, weights.any_hidden, config);
    #[unroll]
    for index in 0..comptime!(tile.vectors_per_unit()) {
        deltas[comptime!(index / groups)] += sum_of(of_pairs[index]);
    }
}

/// Turns gradients of weights into gradients of scores before the softcap or after it, exactly 0 where hidden.
#[cube]
pub(crate) fn to_score_gradients(
    weights: &Scored,
    gradients: &mut Array<Four>,
    delta: &Array<f32>,
    #[comptime] before_softcap: bool,
) {
    let pairs = weights.pairs;
    let config = comptime!(pairs.config);
    let keys_in_rows = comptime!(config.keys_in_rows);
    let groups = comptime!(config.tile.groups());
    #[unroll]
    for index in 0..comptime!(config.tile.vectors_per_unit()) {
        let (i, group) = comptime!((index / groups, index % groups));
        let mut row = gradients[index];
        #[unroll]
        for j in 0..4usize {
            let query = comptime!(if keys_in_rows { group * 4 + j } else { i });
            let mut gradient = weights.scores[index].extract(j) * (row.extract(j) - delta[query]);
            if comptime!(config.softcap && before_softcap) {
                gradient *= weights.dsoftcap[index].extract(j);
            }
            row.insert(j, gradient);
        }
        gradients[index] = row;
    }
    zero_hidden(gradients, &weights.hidden, weights.any_hidden, config);
}
