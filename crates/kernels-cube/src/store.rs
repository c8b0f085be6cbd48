//! What the kernels write: rows of outputs and gradients.

use cubecl::prelude::*;

use crate::{
    tile::{Four, Unit},
    visible::Pairs,
};

/// Writes a unit's part of a result `[batch, heads, len, dim]`, times `factor`: its rows, with `parts` parts of each as wide as the tile, from part
/// `first` on. Batch item and head of `pairs` are those of the result.
#[cube]
pub(crate) fn store_rows<F: Float>(
    sums: &Array<Four>,
    factor: f32,
    result: &mut Tensor<F>,
    pairs: Pairs,
    #[comptime] first: usize,
    #[comptime] parts: usize,
) {
    let tile = comptime!(pairs.config.tile);
    let place = pairs.place;
    let to = place.batch * result.stride(0) + place.head * result.stride(1);
    let end = result.shape(2);
    let dim = result.shape(3);
    let stride = result.stride(2);
    #[unroll]
    for i in 0..comptime!(tile.rows) {
        let row = pairs.row + i;
        if row < end {
            #[unroll]
            for part in 0..comptime!(parts * tile.groups()) {
                let four = sums[comptime!(i * parts * tile.groups() + part)];
                let group = comptime!(part % tile.groups());
                let skip = comptime!((first + part / tile.groups()) * tile.size + tile.skip(group));
                #[unroll]
                for j in 0..4usize {
                    let at = comptime!(skip + j) + pairs.column;
                    if at < dim {
                        result[to + row * stride + at] = F::cast_from(four.extract(j) * factor);
                    }
                }
            }
        }
    }
}

/// Writes a number of each row. Batch item and head of `pairs` are those of the result, `[batch, heads, len, 1]`.
#[cube]
pub(crate) fn store_deltas(
    deltas: &Array<f32>,
    result: &mut Tensor<f32>,
    pairs: Pairs,
    unit: &mut Unit,
) {
    let place = pairs.place;
    let to = (place.batch * result.shape(1) + place.head) * place.len_q;
    #[unroll]
    for i in 0..comptime!(unit.tile.rows) {
        let row = pairs.row + i;
        if unit.x == 0 && row < place.len_q {
            result[to + row] = deltas[i];
        }
    }
}
