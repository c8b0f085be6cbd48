//! The tiles of the other side, one after another. With room for both operands, a tile is read while the one before is computed,
//! unless [`Matrix::ahead`](super::shape::Matrix::ahead) says no: then [`put_tile`] reads it.

use cubecl::prelude::*;

use super::operands::{Ahead, Operands, read_ahead, write_ahead};
use crate::{
    scoring::{Config, Scoring},
    tile::{Side, Unit, side},
    visible::{Place, next_visible},
};

/// A head of two tensors that are read tile by tile, with `dim_qk` and `dim_v` numbers a row.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct Source<'a, F: Float, N: Size> {
    pub(crate) first: &'a Tensor<Vector<F, N>>,
    pub(crate) second: &'a Tensor<Vector<F, N>>,
    pub(crate) batch: usize,
    pub(crate) head: usize,
}

#[cube]
pub(crate) fn source<'a, F: Float, N: Size>(
    first: &'a Tensor<Vector<F, N>>,
    second: &'a Tensor<Vector<F, N>>,
    batch: usize,
    head: usize,
) -> Source<'a, F, N> {
    Source::<'a, F, N> {
        first,
        second,
        batch,
        head,
    }
}

#[cube]
fn rows<'a, F: Float, N: Size>(
    source: Source<'_, F, N>,
    tensor: &'a Tensor<Vector<F, N>>,
    number: usize,
    #[comptime] config: Config,
) -> Side<'a, F, N> {
    let first = number * comptime!(config.tile.size);
    side::<F, N>(tensor, source.batch, source.head, first, f32::new(1.0))
}

/// Waits for the cube, begins to read the first tile from `from` on with a visible pair, and returns its number, `end` or more without one.
/// `own` is the number of the cube's own tile.
#[cube]
pub(crate) fn fetch_tile<F: Float, M: Numeric, N: Size>(
    source: Source<'_, F, N>,
    scoring: &Scoring<M>,
    place: Place,
    from: usize,
    end: usize,
    own: usize,
    ahead: &mut Ahead<F>,
    #[comptime] config: Config,
) -> usize {
    sync_cube();
    let next = next_visible::<M>(scoring, place, from, end, own, config);
    if next < end {
        let first = rows::<F, N>(source, source.first, next, config);
        let second = rows::<F, N>(source, source.second, next, config);
        read_ahead(first, second, ahead, comptime!(config.matrix.unwrap()));
    }
    next
}

/// Waits for the cube, and puts tile `number`, which [`fetch_tile`] has read, into shared memory.
#[cube]
pub(crate) fn put_tile<F: Float, T: Float, N: Size>(
    source: Source<'_, F, N>,
    number: usize,
    ahead: &Ahead<F>,
    unit: &mut Unit,
    operands: &mut Operands<T>,
    #[comptime] config: Config,
) {
    sync_cube();
    let first = rows::<F, N>(source, source.first, number, config);
    let second = rows::<F, N>(source, source.second, number, config);
    write_ahead(
        first,
        second,
        ahead,
        unit,
        operands,
        comptime!(config.matrix.unwrap()),
    );
}
