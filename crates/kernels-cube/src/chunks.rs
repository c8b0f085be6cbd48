//! Chunks of operands: from tensors to registers, and from there to shared memory.
//!
//! Shared memory has operands transposed, the shared dimension first: entry `[k][row / 4]` is a vector of four rows, so that a product reads
//! a vector of each side per step. The vectors of one `k` are permuted by `k / 4` of its chunk, which spreads neighbouring `k` over the banks.

use cubecl::prelude::*;

use crate::tile::{Four, Quad, Side, Tile, Unit};

/// Numbers `column .. column + 4` of a row, or numbers near them if it has fewer: [`seen_quad`] tells. A branch around a read would make the next
/// read wait, and so would a look at what was read.
#[cube]
pub(crate) fn read_quad<F: Float, N: Size>(
    rows: Side<'_, F, N>,
    row: usize,
    column: usize,
) -> Quad<F> {
    let tensor = rows.tensor;
    let size = tensor.vector_size().comptime();
    let from = rows.base + row.min(rows.end - 1) * rows.stride;
    let mut numbers = Quad::<F>::new(F::new(0.0));
    if comptime!(size == 4) {
        numbers = Quad::<F>::cast_from(tensor[(from + column.min(rows.dim - 4)) / 4]);
    } else {
        #[unroll]
        for i in 0..4usize {
            let read = tensor[from + (column + i).min(rows.dim - 1)].extract(0usize);
            numbers.insert(i, read);
        }
    }
    numbers
}

/// What [`read_quad`] has read as f32, with zeros beyond the tensor or if `wanted` is false.
#[cube]
fn seen_quad<F: Float, N: Size>(
    read: Quad<F>,
    rows: Side<'_, F, N>,
    row: usize,
    column: usize,
    wanted: bool,
) -> Four {
    let size = rows.tensor.vector_size().comptime();
    let wanted = wanted && row < rows.end && column < rows.dim;
    let mut numbers = Four::new(0.0f32);
    #[unroll]
    for i in 0..4usize {
        let wanted = wanted && (comptime!(size == 4) || column + i < rows.dim);
        numbers.insert(
            i,
            select(wanted, f32::cast_from(read.extract(i)), f32::new(0.0)),
        );
    }
    numbers
}

/// Rounds in which the units of a cube copy `count` squares or vectors.
pub(crate) fn rounds(tile: Tile, count: usize) -> usize {
    count.div_ceil(tile.units())
}

/// Reads a unit's squares of a chunk of both sides of dot products, or writes what it has read. The first units have the squares of `left`.
#[cube]
pub(crate) fn copy_squares<F: Float, N: Size>(
    left: Side<'_, F, N>,
    right: Side<'_, F, N>,
    chunk: usize,
    read: &mut Array<Quad<F>>,
    unit: &mut Unit,
    #[comptime] writes: bool,
) {
    let tile = comptime!(unit.tile);
    #[unroll]
    for round in 0..comptime!(rounds(tile, 2 * tile.squares())) {
        let first = comptime!(round * tile.units());
        let (squares, last) = comptime!((tile.squares(), first + tile.units()));
        let square = UNIT_POS as usize + first;
        if comptime!(last <= squares) {
            copy_square(left, square, chunk, read, unit, 0usize, round, writes);
        } else if comptime!(first >= squares) {
            let square = square - squares;
            copy_square(right, square, chunk, read, unit, 1usize, round, writes);
        } else if square < squares {
            copy_square(left, square, chunk, read, unit, 0usize, round, writes);
        } else {
            let square = square - squares;
            copy_square(right, square, chunk, read, unit, 1usize, round, writes);
        }
    }
}

/// Reads four rows and four columns of a chunk, or writes them into shared memory, transposed, times the factor of side `number`: `[chunk][size / 4]`.
#[cube]
fn copy_square<F: Float, N: Size>(
    rows: Side<'_, F, N>,
    square: usize,
    chunk: usize,
    read: &mut Array<Quad<F>>,
    unit: &mut Unit,
    #[comptime] number: usize,
    #[comptime] round: usize,
    #[comptime] writes: bool,
) {
    let tile = comptime!(unit.tile);
    let across = comptime!(tile.chunk() / 4);
    let (quad, quad_of_k) = (square / across, square % across);
    let first = rows.first + quad * 4;
    let column = (chunk * across + quad_of_k) * 4;
    if comptime!(!writes) {
        #[unroll]
        for i in 0..4usize {
            read[comptime!(round * 4 + i)] = read_quad(rows, first + i, column);
        }
    } else {
        let quads = comptime!(tile.size / 4);
        let to = buffer(chunk, number, tile);
        let mut seen = Array::<Four>::new(4usize);
        #[unroll]
        for i in 0..4usize {
            let numbers = read[comptime!(round * 4 + i)];
            seen[i] = seen_quad(numbers, rows, first + i, column, true) * Four::new(rows.factor);
        }
        #[unroll]
        for j in 0..4usize {
            let mut across = Four::new(0.0f32);
            #[unroll]
            for i in 0..4usize {
                across.insert(i, seen[i].extract(j));
            }
            unit.pool[to + (quad_of_k * 4 + j) * quads + (quad ^ quad_of_k)] = across;
        }
    }
}

/// Where a chunk of operand `number` is in shared memory.
#[cube]
pub(crate) fn buffer(chunk: usize, #[comptime] number: usize, #[comptime] tile: Tile) -> usize {
    let first = comptime!(number * tile.operand());
    first + chunk % comptime!(tile.buffers()) * comptime!(tile.of_chunk())
}

/// Reads a unit's vectors of a chunk of the tile's rows, columns `part * size ..`.
#[cube]
pub(crate) fn read_rows<F: Float, N: Size>(
    rows: Side<'_, F, N>,
    chunk: usize,
    read: &mut Array<Quad<F>>,
    #[comptime] part: usize,
    #[comptime] tile: Tile,
) {
    let quads = comptime!(tile.size / 4);
    #[unroll]
    for round in 0..comptime!(rounds(tile, tile.of_chunk())) {
        let at = UNIT_POS as usize + comptime!(round * tile.units());
        let row = rows.first + chunk * comptime!(tile.chunk()) + at / quads;
        read[round] = read_quad(rows, row, comptime!(part * tile.size) + at % quads * 4);
    }
}

/// Puts what [`read_rows`] has read into shared memory: `[chunk][size / 4]`. Unless `all_seen`, rows that are not `seen` become zeros, even if they
/// are NaN.
#[cube]
pub(crate) fn write_rows<F: Float, N: Size>(
    rows: Side<'_, F, N>,
    chunk: usize,
    all_seen: bool,
    read: &Array<Quad<F>>,
    unit: &mut Unit,
    #[comptime] part: usize,
) {
    let tile = comptime!(unit.tile);
    let quads = comptime!(tile.size / 4);
    let to = comptime!(tile.scores()) + buffer(chunk, 0usize, tile);
    #[unroll]
    for round in 0..comptime!(rounds(tile, tile.of_chunk())) {
        let at = UNIT_POS as usize + comptime!(round * tile.units());
        let (k, quad) = (at / quads, at % quads);
        let row = chunk * comptime!(tile.chunk()) + k;
        let column = comptime!(part * tile.size) + quad * 4;
        let wanted = all_seen || unit.seen[row] != 0;
        let numbers = seen_quad(read[round], rows, rows.first + row, column, wanted);
        unit.pool[to + k * quads + (quad ^ (k / 4))] = numbers;
    }
}
