//! Statistics of the queries that are a tile's columns.

use cubecl::prelude::*;

use super::shape::Matrix;
use crate::{
    tile::{Four, Unit},
    visible::Place,
};

/// The place in the pool of vector `at` of the statistics: behind the scores of row `at`.
#[cube]
fn place_of(at: usize, #[comptime] matrix: Matrix) -> usize {
    at * comptime!(matrix.score_stride()) + comptime!(matrix.columns / 4)
}

/// Puts both statistics of the queries that are the tile's columns into shared memory. Needs a barrier before, and one after.
#[cube]
pub(crate) fn load_column_statistics(
    statistics: &Tensor<f32>,
    place: Place,
    first: usize,
    unit: &mut Unit,
    #[comptime] matrix: Matrix,
) {
    let quads = comptime!(matrix.columns / 4);
    let at = UNIT_POS as usize;
    if at < 2 * quads {
        let (number, quad) = (at / quads, at % quads);
        let heads = statistics.shape(2);
        let head = (number * statistics.shape(1) + place.batch) * heads + place.head;
        let mut four = Four::new(0.0f32);
        #[unroll]
        for i in 0..4usize {
            // Queries beyond the last are hidden.
            let query = (first + quad * 4 + i).min(place.len_q - 1);
            four.insert(i, statistics[head * place.len_q + query]);
        }
        unit.pool[place_of(at, matrix)] = four;
    }
}

/// Statistic `number` of each column of a unit.
#[cube]
pub(crate) fn of_columns(
    unit: &mut Unit,
    #[comptime] number: usize,
    #[comptime] matrix: Matrix,
) -> Array<f32> {
    let tile = comptime!(unit.tile);
    let first = comptime!(number * matrix.columns / 4);
    let mut numbers = Array::<f32>::new(comptime!(tile.columns));
    #[unroll]
    for group in 0..comptime!(tile.groups()) {
        let at = first + unit.x + comptime!(tile.skip(group) / 4);
        let four = unit.pool[place_of(at, matrix)];
        #[unroll]
        for j in 0..4usize {
            numbers[comptime!(group * 4 + j)] = four.extract(j);
        }
    }
    numbers
}
