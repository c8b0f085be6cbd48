//! Rescaling the sums of a plane, row by row.

use cubecl::{
    cmma::{self, MatrixLayout},
    prelude::*,
};

use super::{
    fragments::{Fragments, first_row, own_vector, reduce_row, store_fragment},
    shape::Matrix,
};
use crate::{
    score::largest_of,
    scoring::highest_finite,
    tile::{Four, Unit},
};

/// Bound on the scaled gradients of scores; the largest number of f16 is 65504.
const LARGEST: f32 = 32768.0;

/// Multiplies each row of a plane's sums by the `factor` of its units, if `wanted` by any unit of the plane. Begins with a barrier of the
/// plane; overwrites scores.
///
/// No barrier is in a branch on which planes differ: at a barrier of one plane, Mesa's lavapipe waits for all planes.
#[cube]
pub(crate) fn rescale(
    sums: &mut Fragments<f32>,
    factor: f32,
    wanted: bool,
    unit: &mut Unit,
    #[comptime] dim: usize,
    #[comptime] matrix: Matrix,
) {
    sync_plane();
    let wanted = plane_any(wanted);
    let tile = comptime!(unit.tile);
    let stride = comptime!(matrix.score_stride());
    let own = own_vector(unit, matrix);
    #[unroll]
    for part in 0..comptime!(matrix.parts(dim)) {
        let first = comptime!(part * matrix.columns / matrix.n);
        let end = comptime!((first + matrix.columns / matrix.n).min(dim / matrix.n));
        if comptime!(part > 0) {
            sync_plane();
        }
        if wanted {
            #[unroll]
            for column in first..end {
                store_fragment(&sums[column], unit, comptime!(column - first), matrix);
            }
        }
        sync_plane();
        if wanted {
            #[unroll]
            for group in 0..comptime!(tile.groups()) {
                unit.pool[own + comptime!(tile.skip(group) / 4)] *= Four::new(factor);
            }
        }
        sync_plane();
        if wanted {
            #[unroll]
            for column in first..end {
                let at = first_row(matrix) * stride + comptime!((column - first) * matrix.n / 4);
                let last = unit.pool.len();
                cmma::load_with_layout(
                    &mut sums[column],
                    &unit.pool[at..last],
                    comptime!(stride as u32 * 4),
                    comptime!(MatrixLayout::RowMajor),
                );
            }
        }
    }
}

/// Multiplies a row's gradients of scores by a power of two that brings them into the range of f16, and returns that power. `factor` is
/// the power of the earlier tiles, 0 if all their gradients were zero. A larger gradient lowers the power, and the sums are rescaled.
#[cube]
pub(crate) fn fit(
    gradients: &mut Array<Four>,
    factor: f32,
    sums: &mut Fragments<f32>,
    unit: &mut Unit,
    #[comptime] dim: usize,
    #[comptime] matrix: Matrix,
) -> f32 {
    let groups = comptime!(unit.tile.groups());
    let mut largest = gradients[0usize].abs();
    #[unroll]
    for group in 1..groups {
        largest = largest.max(gradients[group].abs());
    }
    let top = reduce_row(largest_of(largest), true, comptime!(unit.tile));
    let zero = f32::new(0.0);
    let is_first = factor == zero;
    let (mut fitted, mut ratio) = (factor, f32::new(1.0));
    let grows = top > zero && top <= highest_finite() && (is_first || top * factor > LARGEST);
    if grows {
        // Brings the largest gradient to 64 .. 128: 2 to the power of 6 less its exponent.
        let exponent = (u32::reinterpret(top) >> 23).max(6u32);
        fitted = f32::reinterpret((260u32 - exponent) << 23);
        if !is_first {
            ratio = fitted / factor;
        }
    }
    rescale(sums, ratio, grows && !is_first, unit, dim, matrix);
    let by = select(fitted == zero, f32::new(1.0), fitted);
    #[unroll]
    for group in 0..groups {
        gradients[group] *= Four::new(by);
    }
    fitted
}
