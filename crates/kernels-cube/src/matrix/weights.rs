//! Gradients of weights.

use cubecl::prelude::*;

use super::{
    fragments::{Fragments, dot_products},
    operands::{Operands, load_operand},
    shape::Matrix,
};
use crate::{
    dropout::{drop_weights, dropped},
    scoring::Scoring,
    tile::{Four, Side, Unit},
    visible::Pairs,
};

/// [`weight_gradients`](crate::weights::weight_gradients) where rows are queries: the dot products of the plane's rows of the output's gradient with the
/// values, which are operand 1. With room for one operand, the cube loads them first.
#[cube]
pub(crate) fn weight_gradients<F: Float, M: Numeric, T: Float, N: Size>(
    upstream: &Fragments<T>,
    values: Side<'_, F, N>,
    scoring: &Scoring<M>,
    pairs: Pairs,
    unit: &mut Unit,
    operands: &mut Operands<T>,
    #[comptime] matrix: Matrix,
) -> Array<Four> {
    let dim = comptime!(matrix.dim_v);
    if comptime!(matrix.operands == 1) {
        sync_cube();
        let to = comptime!(matrix.operand(1));
        load_operand::<F, T, N>(values, true, unit, operands, to, dim, matrix);
        sync_cube();
    }
    let one = f32::new(1.0);
    let mut gradients = dot_products::<T>(upstream, one, unit, operands, 1usize, dim, matrix);
    let dropped = dropped::<M>(scoring, pairs);
    drop_weights::<M>(&mut gradients, &dropped, scoring, comptime!(pairs.config));
    gradients
}
