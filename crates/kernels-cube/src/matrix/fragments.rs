//! Matrix products of a plane, and sums in its fragments.

use cubecl::{
    cmma::{self, MatrixIdent, MatrixLayout},
    prelude::*,
};

use super::{
    operands::{Operands, load_heads, load_operand, put, rows_from},
    shape::Matrix,
};
use crate::tile::{Four, Quad, Side, Tile, Unit};

/// The fragments of a plane's rows, from the first columns to the last.
pub(crate) type Fragments<T> = Sequence<cmma::Matrix<T>>;

/// This unit, which holds part `x` of row `y`; neighbouring units hold the parts of a row. The pool has scores, and statistics of columns.
#[cube]
pub(crate) fn unit_of_plane(#[comptime] tile: Tile, #[comptime] matrix: Matrix) -> Unit {
    let lane = UNIT_POS_PLANE as usize;
    let across = comptime!(tile.across());
    Unit {
        y: first_row(matrix) + lane / across,
        x: lane % across,
        pool: Shared::<[Four]>::new_slice(comptime!(matrix.pool())),
        seen: Shared::<[u32]>::new_slice(comptime!(matrix.columns)),
        tile,
    }
}

#[cube]
pub(crate) fn first_row(#[comptime] matrix: Matrix) -> usize {
    PLANE_POS as usize * comptime!(matrix.m)
}

/// This plane's rows of the tile that begins at the first of `rows`, or of a tile of all rows of `heads` heads, as the left side of products.
/// Overwrites the operands.
#[cube]
#[allow(
    clippy::if_same_then_else,
    reason = "the first condition is known when the kernel is compiled, and a branch less is registers less"
)]
pub(crate) fn own_rows<F: Float, T: Float, N: Size>(
    rows: Side<'_, F, N>,
    unit: &mut Unit,
    operands: &mut Operands<T>,
    #[comptime] heads: usize,
    #[comptime] dim: usize,
    #[comptime] matrix: Matrix,
) -> Fragments<T> {
    let stride = comptime!(matrix.stride(dim));
    let at_once = comptime!(matrix.rows.min(matrix.operands * matrix.columns));
    let steps = comptime!(dim / matrix.k);
    let mut own = Sequence::<cmma::Matrix<T>>::new();
    #[unroll]
    for _ in 0..comptime!(matrix.pieces * steps) {
        own.push(unwritten::<T>(
            MatrixIdent::A,
            MatrixLayout::RowMajor,
            matrix,
        ));
    }
    #[unroll]
    for part in 0..comptime!(matrix.rows / at_once) {
        let first = comptime!(part * at_once);
        sync_cube();
        if comptime!(heads > 1) {
            load_heads::<F, T, N>(rows, operands, heads, first, at_once, dim, matrix);
        } else {
            #[unroll]
            for number in 0..comptime!(at_once / matrix.columns) {
                let skip = comptime!(number * matrix.columns);
                let to = comptime!(skip * stride);
                let rows = rows_from(rows, 0usize, comptime!(first + skip));
                load_operand::<F, T, N>(rows, true, unit, operands, to, dim, matrix);
            }
        }
        sync_cube();
        if comptime!(at_once == matrix.rows) {
            load_own(&mut own, operands, first, dim, matrix);
        } else if PLANE_POS as usize / comptime!(at_once / matrix.m) == part {
            load_own(&mut own, operands, first, dim, matrix);
        }
    }
    own
}

/// Loads the fragments of a plane's rows of the tile, of which the rows from `first` on are in shared memory.
#[cube]
fn load_own<T: Float>(
    own: &mut Fragments<T>,
    operands: &mut Operands<T>,
    #[comptime] first: usize,
    #[comptime] dim: usize,
    #[comptime] matrix: Matrix,
) {
    let (stride, steps) = comptime!((matrix.stride(dim), dim / matrix.k));
    let at = (first_row(matrix) - first) * stride;
    let end = operands.rows.len();
    #[unroll]
    for index in 0..comptime!(matrix.pieces * steps) {
        let (piece, step) = comptime!((index / steps, index % steps));
        let from = comptime!(piece * matrix.all_operands() + step * matrix.k / 4);
        let from = &operands.rows[at + from..end];
        cmma::load(&mut own[index], from, comptime!(stride as u32 * 4));
    }
}

#[cube]
#[allow(unsafe_code, reason = "a fragment is written before it is read")]
fn unwritten<T: Float>(
    #[comptime] ident: MatrixIdent,
    #[comptime] layout: MatrixLayout,
    #[comptime] matrix: Matrix,
) -> cmma::Matrix<T> {
    let (m, n, k) = comptime!((matrix.m, matrix.n, matrix.k));
    // SAFETY: `fragment` and `own_rows`, which alone call this, load the whole fragment before it is read.
    unsafe { cmma::Matrix::<T>::uninitialized(ident, m, n, k, layout) }
}

/// The fragment at the beginning of a slice, whose rows are `stride` vectors apart.
#[cube]
fn fragment<T: Float>(
    from: &[Quad<T>],
    #[comptime] stride: usize,
    #[comptime] ident: MatrixIdent,
    #[comptime] layout: MatrixLayout,
    #[comptime] matrix: Matrix,
) -> cmma::Matrix<T> {
    let mut fragment = unwritten::<T>(ident, layout, matrix);
    cmma::load(&mut fragment, from, comptime!(stride as u32 * 4));
    fragment
}

/// Zeros for the rows of a plane times `dim` columns.
#[cube]
pub(crate) fn zero_sums(#[comptime] dim: usize, #[comptime] matrix: Matrix) -> Fragments<f32> {
    let mut sums = Sequence::<cmma::Matrix<f32>>::new();
    #[unroll]
    for _ in 0..comptime!(dim / matrix.n) {
        sums.push(zero_fragment(matrix));
    }
    sums
}

#[cube]
fn zero_fragment(#[comptime] matrix: Matrix) -> cmma::Matrix<f32> {
    let (m, n, k) = comptime!((matrix.m, matrix.n, matrix.k));
    let (ident, layout) = comptime!((MatrixIdent::Accumulator, MatrixLayout::Undefined));
    cmma::Matrix::<f32>::from_value(ident, m, n, k, layout, f32::new(0.0))
}

/// A unit's part of the dot products of the plane's rows, `left`, with the rows of operand `number`, times `factor`. Begins with a barrier of
/// the plane, whose units may still read the scores that the products overwrite.
#[cube]
pub(crate) fn dot_products<T: Float>(
    left: &Fragments<T>,
    factor: f32,
    unit: &mut Unit,
    operands: &mut Operands<T>,
    #[comptime] number: usize,
    #[comptime] dim: usize,
    #[comptime] matrix: Matrix,
) -> Array<Four> {
    let stride = comptime!(matrix.stride(dim));
    let operand = comptime!(matrix.operand(number));
    let steps = comptime!(dim / matrix.k);
    sync_plane();
    let together = comptime!(matrix.together);
    #[unroll(matrix.unrolled)]
    for block in 0..comptime!(matrix.columns / matrix.n / together) {
        let mut sums = Sequence::<cmma::Matrix<f32>>::new();
        #[unroll]
        for _ in 0..together {
            sums.push(zero_fragment(matrix));
        }
        #[unroll]
        for step in 0..steps {
            #[unroll]
            for column in 0..together {
                #[unroll]
                for piece in 0..comptime!(matrix.pieces) {
                    let from = comptime!(operand + piece * matrix.all_operands());
                    let from = comptime!(from + column * matrix.n * stride + step * matrix.k / 4);
                    let at = block * comptime!(together * matrix.n * stride) + from;
                    let end = operands.rows.len();
                    let right = fragment::<T>(
                        &operands.rows[at..end],
                        stride,
                        MatrixIdent::B,
                        MatrixLayout::ColMajor,
                        matrix,
                    );
                    let sum = &sums[column];
                    // The product of two rests is too small to count.
                    #[unroll]
                    for other in 0..comptime!(matrix.pieces - piece) {
                        let at = comptime!(other * steps + step);
                        cmma::execute(&left[at], &right, sum, sum);
                    }
                }
            }
        }
        #[unroll]
        for column in 0..together {
            store_fragment(&sums[column], unit, block * together + column, matrix);
        }
    }
    sync_plane();
    let mut products = own_part(unit, matrix);
    #[unroll]
    for group in 0..comptime!(unit.tile.groups()) {
        products[group] *= Four::new(factor);
    }
    products
}

/// Stores a fragment of sums over the scores of its rows, in columns `column * n ..`.
#[cube]
pub(crate) fn store_fragment(
    sums: &cmma::Matrix<f32>,
    unit: &mut Unit,
    column: usize,
    #[comptime] matrix: Matrix,
) {
    let stride = comptime!(matrix.score_stride());
    let at = first_row(matrix) * stride + column * comptime!(matrix.n / 4);
    let end = unit.pool.len();
    let layout = comptime!(MatrixLayout::RowMajor);
    cmma::store(
        &mut unit.pool[at..end],
        sums,
        comptime!(stride as u32 * 4),
        layout,
    );
}

/// A unit's part of the tile of scores in the pool.
#[cube]
fn own_part(unit: &mut Unit, #[comptime] matrix: Matrix) -> Array<Four> {
    let tile = comptime!(unit.tile);
    let first = own_vector(unit, matrix);
    let mut part = Array::<Four>::new(comptime!(tile.groups()));
    #[unroll]
    for group in 0..comptime!(tile.groups()) {
        part[group] = unit.pool[first + comptime!(tile.skip(group) / 4)];
    }
    part
}

/// The first vector of a unit's part of the tile in the pool.
#[cube]
pub(crate) fn own_vector(unit: &mut Unit, #[comptime] matrix: Matrix) -> usize {
    unit.y * comptime!(matrix.score_stride()) + unit.x
}

/// Adds the rows of operand `number` to `sums`, weighted by `weights`, the units' parts of a tile. Begins with a barrier of the plane.
#[cube]
pub(crate) fn add_weighted_rows<T: Float>(
    weights: &Array<Four>,
    sums: &Fragments<f32>,
    unit: &mut Unit,
    operands: &mut Operands<T>,
    #[comptime] number: usize,
    #[comptime] dim: usize,
    #[comptime] matrix: Matrix,
) {
    let tile = comptime!(unit.tile);
    let of_row = comptime!(matrix.stride(matrix.columns));
    let own = unit.y * of_row + unit.x;
    sync_plane();
    #[unroll]
    for group in 0..comptime!(tile.groups()) {
        let to = own + comptime!(tile.skip(group) / 4);
        let to_rest = comptime!(matrix.weights());
        put::<f32, T>(weights[group], &mut operands.weights, to, to_rest, matrix);
    }
    sync_plane();
    let stride = comptime!(matrix.stride(dim));
    let operand = comptime!(matrix.operand(number));
    let first = first_row(matrix) * of_row;
    #[unroll(matrix.unrolled)]
    for step in 0..comptime!(matrix.columns / matrix.k) {
        #[unroll]
        for piece in 0..comptime!(matrix.pieces) {
            let at = first + step * comptime!(matrix.k / 4) + comptime!(piece * matrix.weights());
            let end = operands.weights.len();
            let left = fragment::<T>(
                &operands.weights[at..end],
                of_row,
                MatrixIdent::A,
                MatrixLayout::RowMajor,
                matrix,
            );
            #[unroll]
            for column in 0..comptime!(dim / matrix.n) {
                #[unroll]
                for other in 0..comptime!(matrix.pieces - piece) {
                    let from = comptime!(operand + other * matrix.all_operands());
                    let at = step * comptime!(matrix.k * stride)
                        + comptime!(from + column * matrix.n / 4);
                    let end = operands.rows.len();
                    let right = fragment::<T>(
                        &operands.rows[at..end],
                        stride,
                        MatrixIdent::B,
                        MatrixLayout::RowMajor,
                        matrix,
                    );
                    cmma::execute(&left, &right, &sums[column], &sums[column]);
                }
            }
        }
    }
}

/// A unit's part of the sums in columns `part * size ..`. Begins with a barrier of the plane; overwrites scores.
#[cube]
pub(crate) fn part_of_sums(
    sums: &mut Fragments<f32>,
    unit: &mut Unit,
    #[comptime] part: usize,
    #[comptime] dim: usize,
    #[comptime] matrix: Matrix,
) -> Array<Four> {
    let first = comptime!(part * matrix.columns / matrix.n);
    let end = comptime!((first + matrix.columns / matrix.n).min(dim / matrix.n));
    sync_plane();
    #[unroll]
    for column in first..end {
        store_fragment(&sums[column], unit, comptime!(column - first), matrix);
    }
    sync_plane();
    own_part(unit, matrix)
}

/// The largest of the numbers that the units of a row hold, or their sum. With several units, begins with a barrier of the plane: those that took
/// different branches would not find each other.
#[cube]
pub(crate) fn reduce_row(number: f32, #[comptime] largest: bool, #[comptime] tile: Tile) -> f32 {
    let mut result = number;
    if comptime!(tile.across() > 1) {
        sync_plane();
    }
    #[unroll]
    for step in 0..comptime!(tile.across().ilog2()) {
        let other = plane_shuffle_xor(result, comptime!(1u32 << step));
        if comptime!(largest) {
            result = result.max(other);
        } else {
            result += other;
        }
    }
    result
}
