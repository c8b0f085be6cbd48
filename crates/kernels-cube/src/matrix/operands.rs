//! From tensors to shared memory.

use cubecl::prelude::*;

use super::shape::Matrix;
use crate::{
    chunks::read_quad,
    tile::{Four, Quad, Side, Unit, clear_flags},
};

/// The bits of four numbers in half precision.
type Bits = Vector<u32, Const<2>>;

/// Operands in shared memory, in the type that matrix units multiply. With two pieces, the first of all numbers precede the second.
#[derive(CubeType)]
pub(crate) struct Operands<T: Float> {
    /// Rows of tensors.
    pub(crate) rows: Shared<[Quad<T>]>,
    /// A tile of weights, or of gradients of scores.
    pub(crate) weights: Shared<[Quad<T>]>,
}

#[cube]
pub(crate) fn operands<T: Float>(#[comptime] matrix: Matrix) -> Operands<T> {
    let pieces = comptime!(matrix.pieces);
    Operands::<T> {
        rows: Shared::<[Quad<T>]>::new_slice(comptime!(pieces * matrix.all_operands())),
        weights: Shared::<[Quad<T>]>::new_slice(comptime!(pieces * matrix.weights())),
    }
}

/// Bits of a number in f32 that are digits of TF32 and f16, or none of the digits.
const DIGITS: u32 = 0xffff_e000;

/// Puts four numbers into vector `at` of an operand. With two pieces, these are the digits that the type has, and the rest, `to_rest` vectors later;
/// infinity becomes NaN.
#[cube]
pub(crate) fn put<F: Float, T: Float>(
    numbers: Quad<F>,
    operand: &mut Shared<[Quad<T>]>,
    at: usize,
    #[comptime] to_rest: usize,
    #[comptime] matrix: Matrix,
) {
    if comptime!(matrix.pieces > 1) {
        // Rounding, as the other way to split, is folded away by Mesa: it takes a number that went to f16 and back for the same number.
        let numbers = Four::cast_from(numbers);
        let bits = Vector::<u32, Const<4>>::reinterpret(numbers);
        let digits = Four::reinterpret(bits & Vector::<u32, Const<4>>::new(DIGITS));
        operand[at] = Quad::<T>::cast_from(digits);
        operand[at + to_rest] = Quad::<T>::cast_from(numbers - digits);
    } else {
        operand[at] = Quad::<T>::cast_from(numbers);
    }
}

/// Four numbers, or zeros.
#[cube]
fn if_wanted<F: Float>(numbers: Quad<F>, wanted: bool) -> Quad<F> {
    let bytes = F::size().comptime();
    let mut result = Quad::<F>::new(F::new(0.0));
    if comptime!(bytes == 2) {
        // Two numbers at once: NVIDIA's compiler takes apart what is selected in 16 bits.
        let numbers = Bits::reinterpret(numbers);
        let mut bits = Bits::new(0u32);
        #[unroll]
        for i in 0..2usize {
            bits.insert(i, select(wanted, numbers.extract(i), 0u32.runtime()));
        }
        result = Quad::<F>::reinterpret(bits);
    } else {
        #[unroll]
        for i in 0..4usize {
            result.insert(i, select(wanted, numbers.extract(i), F::new(0.0)));
        }
    }
    result
}

/// Numbers `column .. column + 4` of a row, zeros beyond the tensor or if `wanted` is false.
#[cube]
fn load_quad<F: Float, N: Size>(
    rows: Side<'_, F, N>,
    row: usize,
    column: usize,
    wanted: bool,
) -> Quad<F> {
    let size = rows.tensor.vector_size().comptime();
    let mut read = read_quad(rows, row, column);
    if comptime!(size < 4) {
        #[unroll]
        for i in 0..4usize {
            let number = read.extract(i);
            read.insert(i, select(column + i < rows.dim, number, F::new(0.0)));
        }
    }
    if_wanted::<F>(read, wanted && row < rows.end && column < rows.dim)
}

/// A side that begins some heads and some rows later.
#[cube]
pub(crate) fn rows_from<'a, F: Float, N: Size>(
    rows: Side<'a, F, N>,
    heads: usize,
    skip: usize,
) -> Side<'a, F, N> {
    Side::<'a, F, N> {
        tensor: rows.tensor,
        base: rows.base + heads * rows.tensor.stride(1),
        stride: rows.stride,
        first: rows.first + skip,
        end: rows.end,
        dim: rows.dim,
        factor: rows.factor,
    }
}

/// How a cube copies a tile's rows of `dim` numbers: vectors of a row, vectors of a unit, and rows from one of these to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Copies {
    of_row: usize,
    rounds: usize,
    between: usize,
    /// Units that copy: all, or the first. Each copies as many vectors, all in the same column.
    units: usize,
}

impl Copies {
    /// `None` if nothing is read ahead, if a row has more vectors than the cube has units, or if the tensor is not read in vectors of four.
    fn of(matrix: Matrix, dim: usize, vector_size: usize) -> Option<Self> {
        let of_row = dim / 4;
        // A power of two, as is the number of rows.
        let at_once = 1 << (matrix.units() / of_row).checked_ilog2()?;
        let between = matrix.columns.min(at_once);
        (matrix.ahead && vector_size == 4).then(|| Self {
            of_row,
            rounds: matrix.columns / between,
            between,
            units: between * of_row,
        })
    }
}

/// Whether this unit copies vectors of a tile, if the tile is whole.
#[cube]
fn is_copying(whole: bool, #[comptime] copies: Copies, #[comptime] matrix: Matrix) -> bool {
    if comptime!(copies.units == matrix.units()) {
        whole
    } else {
        whole && (UNIT_POS as usize) < comptime!(copies.units)
    }
}

/// `count`; where nothing is read ahead, in a form that drivers in software cannot evaluate: Mesa unrolls loops whose rounds it can count.
#[cube]
fn at_run_time(#[comptime] count: usize, #[comptime] matrix: Matrix) -> usize {
    if comptime!(matrix.ahead) {
        count.runtime()
    } else {
        // A launch has cubes.
        select(CUBE_COUNT_X == 0, 0usize.runtime(), count.runtime())
    }
}

/// Whether all of the tile's rows are in the tensor, and have `dim` numbers without padding.
#[cube]
fn is_whole<F: Float, N: Size>(
    rows: Side<'_, F, N>,
    #[comptime] dim: usize,
    #[comptime] matrix: Matrix,
) -> bool {
    rows.first + comptime!(matrix.columns) <= rows.end && rows.dim == dim
}

/// Registers for the vectors of an operand that a unit copies.
#[cube]
fn no_rows<F: Float>(#[comptime] dim: usize, #[comptime] matrix: Matrix) -> Array<Quad<F>> {
    Array::new(comptime!(
        Copies::of(matrix, dim, 4).map_or(1, |copies| copies.rounds)
    ))
}

/// A unit's vectors of both operands of a tile, `dim_qk` and `dim_v` numbers a row, in registers. Unused with room for one operand, and where nothing is read ahead.
#[derive(CubeType)]
pub(crate) struct Ahead<F: Float> {
    first: Array<Quad<F>>,
    second: Array<Quad<F>>,
}

#[cube]
pub(crate) fn none_ahead<F: Float>(#[comptime] matrix: Matrix) -> Ahead<F> {
    Ahead::<F> {
        first: no_rows::<F>(matrix.dim_qk, matrix),
        second: no_rows::<F>(matrix.dim_v, matrix),
    }
}

/// Reads whole tiles of both operands ahead, to overlap the computation. With room for one operand there are too few registers: reads nothing, as in drivers
/// in software.
#[cube]
pub(crate) fn read_ahead<F: Float, N: Size>(
    first: Side<'_, F, N>,
    second: Side<'_, F, N>,
    ahead: &mut Ahead<F>,
    #[comptime] matrix: Matrix,
) {
    if comptime!(matrix.operands > 1) {
        read_rows(first, &mut ahead.first, matrix.dim_qk, matrix);
        read_rows(second, &mut ahead.second, matrix.dim_v, matrix);
    }
}

/// Puts the operands of [`read_ahead`] into shared memory, or loads the first alone. Clears the flags. Needs a barrier before, and one after.
#[cube]
pub(crate) fn write_ahead<F: Float, T: Float, N: Size>(
    first: Side<'_, F, N>,
    second: Side<'_, F, N>,
    ahead: &Ahead<F>,
    unit: &mut Unit,
    operands: &mut Operands<T>,
    #[comptime] matrix: Matrix,
) {
    if comptime!(matrix.operands > 1) {
        write_rows(
            first,
            &ahead.first,
            true,
            unit,
            operands,
            comptime!(matrix.operand(0)),
            matrix.dim_qk,
            matrix,
        );
        write_rows(
            second,
            &ahead.second,
            true,
            unit,
            operands,
            comptime!(matrix.operand(1)),
            matrix.dim_v,
            matrix,
        );
    } else {
        load_operand(
            first,
            true,
            unit,
            operands,
            comptime!(matrix.operand(0)),
            matrix.dim_qk,
            matrix,
        );
    }
    clear_flags(unit);
}

/// Reads the tile's rows, if they are whole and [`Copies`] has a way, to overlap the computation.
#[cube]
fn read_rows<F: Float, N: Size>(
    rows: Side<'_, F, N>,
    read: &mut Array<Quad<F>>,
    #[comptime] dim: usize,
    #[comptime] matrix: Matrix,
) {
    let size = rows.tensor.vector_size().comptime();
    let copies = comptime!(Copies::of(matrix, dim, size));
    if comptime!(copies.is_some()) {
        let copies = comptime!(copies.unwrap());
        if is_copying(is_whole(rows, dim, matrix), copies, matrix) {
            let unit = UNIT_POS as usize;
            let row = unit / comptime!(copies.of_row);
            let quad = unit % comptime!(copies.of_row);
            let from = (rows.base + (rows.first + row) * rows.stride) / 4 + quad;
            let step = comptime!(copies.between) * rows.stride / 4;
            #[unroll]
            for round in 0..comptime!(copies.rounds) {
                read[round] = Quad::<F>::cast_from(rows.tensor[from + comptime!(round) * step]);
            }
        }
    }
}

/// Puts the tile's rows into shared memory from vector `first` on. What [`read_rows`] did not read is read here. Unless
/// `all_seen`, rows that are not seen become zeros, even if they are NaN.
#[cube]
fn write_rows<F: Float, T: Float, N: Size>(
    rows: Side<'_, F, N>,
    read: &Array<Quad<F>>,
    all_seen: bool,
    unit: &mut Unit,
    operands: &mut Operands<T>,
    #[comptime] first: usize,
    #[comptime] dim: usize,
    #[comptime] matrix: Matrix,
) {
    let of_row = comptime!(dim / 4);
    let count = comptime!(matrix.columns * of_row);
    let stride = comptime!(matrix.stride(dim));
    let to_rest = comptime!(matrix.all_operands());
    let size = rows.tensor.vector_size().comptime();
    let copies = comptime!(Copies::of(matrix, dim, size));
    let mut is_read = false.runtime();
    if comptime!(copies.is_some()) {
        let copies = comptime!(copies.unwrap());
        is_read = is_whole(rows, dim, matrix);
        if is_copying(is_read, copies, matrix) {
            let (row, quad) = (UNIT_POS as usize / of_row, UNIT_POS as usize % of_row);
            let to = first + row * stride + quad;
            #[unroll]
            for round in 0..comptime!(copies.rounds) {
                let to = to + round * comptime!(copies.between * stride);
                let mut numbers = read[round];
                // With two operands at a time, all are wanted.
                if comptime!(matrix.operands == 1) {
                    let row = row + comptime!(round * copies.between);
                    numbers = if_wanted::<F>(numbers, all_seen || unit.seen[row] != 0);
                }
                put::<F, T>(numbers, &mut operands.rows, to, to_rest, matrix);
            }
        }
    }
    if !is_read {
        // Not unrolled: where tiles are read ahead, only the last, padded heads, and heads or tensors without `Copies` come here.
        let mut at = UNIT_POS as usize;
        while at < at_run_time(count, matrix) {
            let (row, quad) = (at / of_row, at % of_row);
            let wanted = all_seen || unit.seen[row] != 0;
            let read = load_quad(rows, rows.first + row, quad * 4, wanted);
            let to = first + row * stride + quad;
            put::<F, T>(read, &mut operands.rows, to, to_rest, matrix);
            at += comptime!(matrix.units());
        }
    }
}

/// [`read_rows`], then [`write_rows`].
#[cube]
pub(crate) fn load_operand<F: Float, T: Float, N: Size>(
    rows: Side<'_, F, N>,
    all_seen: bool,
    unit: &mut Unit,
    operands: &mut Operands<T>,
    #[comptime] first: usize,
    #[comptime] dim: usize,
    #[comptime] matrix: Matrix,
) {
    let mut read = no_rows::<F>(dim, matrix);
    read_rows(rows, &mut read, dim, matrix);
    write_rows(rows, &read, all_seen, unit, operands, first, dim, matrix);
}

/// Puts rows `first .. first + count` of all rows of `heads` heads into shared memory, from the head of `rows` on, one head behind the other, and zeros
/// behind the last. Needs a barrier before, and one after.
#[cube]
pub(crate) fn load_heads<F: Float, T: Float, N: Size>(
    rows: Side<'_, F, N>,
    operands: &mut Operands<T>,
    #[comptime] heads: usize,
    #[comptime] first: usize,
    #[comptime] count: usize,
    #[comptime] dim: usize,
    #[comptime] matrix: Matrix,
) {
    let of_row = comptime!(dim / 4);
    let mut at = UNIT_POS as usize;
    while at < at_run_time(count * of_row, matrix) {
        let (to, quad) = (at / of_row, at % of_row);
        let row = first + to;
        let head = row / rows.end;
        let of_head = rows_from(rows, head.min(comptime!(heads - 1)), 0usize);
        let read = load_quad(of_head, row % rows.end, quad * 4, head < heads);
        let to = to * comptime!(matrix.stride(dim)) + quad;
        let to_rest = comptime!(matrix.all_operands());
        put::<F, T>(read, &mut operands.rows, to, to_rest, matrix);
        at += comptime!(matrix.units());
    }
}

/// Sets the rows of operand `number` that no row of the tile sees to zero, where two operands are in shared memory at a time, and thus numbers are one
/// piece. Needs a barrier before, and one after.
#[cube]
pub(crate) fn clear_unseen<T: Float>(
    unit: &mut Unit,
    operands: &mut Operands<T>,
    #[comptime] number: usize,
    #[comptime] dim: usize,
    #[comptime] matrix: Matrix,
) {
    let of_row = comptime!(dim / 4);
    let (first, stride) = comptime!((matrix.operand(number), matrix.stride(dim)));
    let mut at = UNIT_POS as usize;
    while at < at_run_time(matrix.columns * of_row, matrix) {
        let row = at / of_row;
        if unit.seen[row] == 0 {
            operands.rows[first + row * stride + at % of_row] = Quad::<T>::new(T::new(0.0));
        }
        at += comptime!(unit.tile.units());
    }
}
