//! Tiles of numbers in shared memory, and their products in registers.
//!
//! A tile has `height` rows and `size` columns, which are equal in this module. A unit holds `rows` neighbouring rows times `columns` columns, in
//! vectors of four columns. Between two vectors of a unit are those of the other units of the row: neighbouring units read neighbouring vectors.
//! Shared memory has operands transposed, the shared dimension first: entry `[k][row / 4]` is a vector of four rows, so that a product reads
//! a vector of each side per step. The vectors of one `k` are permuted by `k / 4`, which spreads neighbouring `k` over the banks.

use cubecl::prelude::*;

/// Vectors of shared memory and registers.
pub(crate) type Four = Vector<f32, Const<4>>;

/// Steps of the shared dimension that are in shared memory at a time.
const CHUNK: usize = 32;

/// Units of a cube that computes no tile of scores.
pub(crate) const UNTILED_UNITS: usize = 256;

/// Sizes of a cube's tile of scores, and of a unit's part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tile {
    /// Rows of a tile of scores: `size`, except in [`matrix`](crate::matrix). In [`few_queries`](crate::few_queries) more than there are queries.
    pub(crate) height: usize,
    /// Columns of a tile of scores: 32 or 64, in [`few_queries`](crate::few_queries) 256.
    pub(crate) size: usize,
    /// Rows of a unit: 4 or 8, in few queries all rows, on [`matrix`](crate::matrix) units 1.
    pub(crate) rows: usize,
    /// Columns of a unit: 4 or 8, on [`matrix`](crate::matrix) units `size` divided by the units that share a row.
    pub(crate) columns: usize,
}

impl Tile {
    /// Units of a cube.
    pub(crate) fn units(self) -> usize {
        self.height / self.rows * self.across()
    }

    /// Units that cover a row.
    pub(crate) fn across(self) -> usize {
        self.size / self.columns
    }

    /// Vectors of four columns of a unit's row.
    pub(crate) fn groups(self) -> usize {
        self.columns / 4
    }

    /// Vectors of a unit.
    pub(crate) fn vectors_per_unit(self) -> usize {
        self.rows * self.groups()
    }

    /// Columns from a unit's first vector to its vector `group`.
    pub(crate) fn skip(self, group: usize) -> usize {
        group * self.across() * 4
    }

    /// Vectors of one operand in shared memory.
    pub(crate) fn operand(self) -> usize {
        CHUNK * self.size / 4
    }

    /// Vectors of a tile of scores in shared memory.
    pub(crate) fn scores(self) -> usize {
        self.size * self.size / 4
    }

    /// Vectors of shared memory: a tile of scores, and an operand by which the tile is multiplied.
    pub(crate) fn pool(self) -> usize {
        self.scores() + self.operand()
    }

    /// Tiles that cover a length, or a dimension of a head.
    pub(crate) fn cover(self, len: usize) -> usize {
        len.div_ceil(self.size)
    }

    /// Bytes of shared memory of a cube, a flag and two numbers of each column included.
    pub(crate) fn bytes(self) -> usize {
        16 * self.pool() + 12 * self.size
    }
}

/// A unit: where its part of a tile begins, and the memory that it shares with its cube.
#[derive(CubeType)]
pub(crate) struct Unit {
    /// Number of its group of `rows` rows.
    pub(crate) y: usize,
    /// Number of its first group of four columns.
    pub(crate) x: usize,
    /// A tile of scores and an operand by which it is multiplied, or two operands.
    pub(crate) pool: Shared<[Four]>,
    /// Which columns of the tile some row sees.
    pub(crate) seen: Shared<[u32]>,
    #[cube(comptime)]
    pub(crate) tile: Tile,
}

/// 32 neighbouring units are four groups of rows times eight of columns, so that they read few different vectors.
#[cube]
pub(crate) fn unit(#[comptime] tile: Tile) -> Unit {
    let index = UNIT_POS as usize;
    let lane = index % 32;
    let block = index / 32;
    let across = comptime!(tile.across() / 8);
    Unit {
        y: block / across * 4 + lane / 8,
        x: block % across * 8 + lane % 8,
        pool: Shared::<[Four]>::new_slice(comptime!(tile.pool())),
        seen: Shared::<[u32]>::new_slice(comptime!(tile.size)),
        tile,
    }
}

/// One side of a product: a matrix `[rows, dim]` in a tensor.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct Side<'a, F: Float, N: Size> {
    pub(crate) tensor: &'a Tensor<Vector<F, N>>,
    /// Index of its first element, in numbers.
    pub(crate) base: usize,
    /// From one row to the next, in numbers.
    pub(crate) stride: usize,
    /// First row of the tile.
    pub(crate) first: usize,
    /// One past the last row of the matrix.
    pub(crate) end: usize,
    /// Numbers of a row.
    pub(crate) dim: usize,
    /// Factor of the numbers in dot products; [`matrix`](crate::matrix) ignores it.
    pub(crate) factor: f32,
}

/// The rows of a head of a `[batch, heads, len, dim]` tensor, from `first` on.
#[cube]
pub(crate) fn side<'a, F: Float, N: Size>(
    tensor: &'a Tensor<Vector<F, N>>,
    batch: usize,
    head: usize,
    first: usize,
    factor: f32,
) -> Side<'a, F, N> {
    Side::<'a, F, N> {
        tensor,
        base: batch * tensor.stride(0) + head * tensor.stride(1),
        stride: tensor.stride(2),
        first,
        end: tensor.shape(2),
        dim: tensor.shape(3),
        factor,
    }
}

/// Numbers `column .. column + 4` of a row as f32, zeros beyond the tensor or if `wanted` is false.
///
/// A number inside the tensor is read even then: a branch around a read would make the next read wait.
#[cube]
fn load_four<F: Float, N: Size>(
    rows: Side<'_, F, N>,
    row: usize,
    column: usize,
    wanted: bool,
) -> Four {
    let tensor = rows.tensor;
    let size = tensor.vector_size().comptime();
    let from = rows.base + row.min(rows.end - 1) * rows.stride;
    let wanted = wanted && row < rows.end;
    let mut numbers = Four::new(0.0f32);
    if comptime!(size == 4) {
        let read = tensor[(from + column.min(rows.dim - 4)) / 4];
        let wanted = wanted && column < rows.dim;
        #[unroll]
        for i in 0..4usize {
            numbers.insert(
                i,
                select(wanted, f32::cast_from(read.extract(i)), f32::new(0.0)),
            );
        }
    } else {
        #[unroll]
        for i in 0..4usize {
            let read = tensor[from + (column + i).min(rows.dim - 1)].extract(0usize);
            let wanted = wanted && column + i < rows.dim;
            numbers.insert(i, select(wanted, f32::cast_from(read), f32::new(0.0)));
        }
    }
    numbers
}

/// Puts columns `chunk * CHUNK ..` of the tile's rows into shared memory, transposed, times their factor: `[CHUNK][size / 4]`.
#[cube]
fn load_transposed<F: Float, N: Size>(
    rows: Side<'_, F, N>,
    chunk: usize,
    unit: &mut Unit,
    #[comptime] to: usize,
) {
    let tile = comptime!(unit.tile);
    let quads = comptime!(tile.size / 4);
    // A unit has a square of four rows and four columns.
    let squares = comptime!(quads * CHUNK / 4);
    let rounds = comptime!(squares.div_ceil(tile.units()));
    #[unroll]
    for round in 0..rounds {
        let square = UNIT_POS as usize + comptime!(round * tile.units());
        if comptime!(squares.is_multiple_of(tile.units())) || square < squares {
            let quad_of_k = square % comptime!(CHUNK / 4);
            let quad = square / comptime!(CHUNK / 4);
            let column = chunk * CHUNK + quad_of_k * 4;
            let mut read = Array::<Four>::new(4usize);
            #[unroll]
            for i in 0..4usize {
                let row = rows.first + quad * 4 + i;
                read[i] = load_four(rows, row, column, true) * Four::new(rows.factor);
            }
            #[unroll]
            for j in 0..4usize {
                let mut across = Four::new(0.0f32);
                #[unroll]
                for i in 0..4usize {
                    across.insert(i, read[i].extract(j));
                }
                unit.pool[to + (quad_of_k * 4 + j) * quads + (quad ^ quad_of_k)] = across;
            }
        }
    }
}

/// Puts `CHUNK` rows of the tile from `skip` on, columns `part * size ..`, into shared memory: `[CHUNK][size / 4]`. Unless
/// `all_seen`, rows that are not `seen` become zeros, even if they are NaN.
#[cube]
fn load_rows<F: Float, N: Size>(
    rows: Side<'_, F, N>,
    skip: usize,
    all_seen: bool,
    unit: &mut Unit,
    #[comptime] part: usize,
) {
    let tile = comptime!(unit.tile);
    let quads = comptime!(tile.size / 4);
    let rounds = comptime!(tile.operand() / tile.units());
    #[unroll]
    for round in 0..rounds {
        let at = UNIT_POS as usize + comptime!(round * tile.units());
        let quad = at % quads;
        let k = at / quads;
        let row = rows.first + skip + k;
        let column = comptime!(part * tile.size) + quad * 4;
        let wanted = all_seen || unit.seen[skip + k] != 0;
        let numbers = load_four(rows, row, column, wanted);
        unit.pool[comptime!(tile.scores()) + k * quads + (quad ^ (k / 4))] = numbers;
    }
}

/// Adds the product over one chunk to part `part` of every row of `sums`, which has `parts` parts per row.
#[cube]
fn product(
    left: usize,
    #[comptime] right: usize,
    sums: &mut Array<Four>,
    unit: &mut Unit,
    #[comptime] part: usize,
    #[comptime] parts: usize,
) {
    let tile = comptime!(unit.tile);
    let quads = comptime!(tile.size / 4);
    let fours = comptime!(tile.rows / 4);
    let groups = comptime!(tile.groups());
    for quad_of_k in 0..comptime!(CHUNK / 4) {
        #[unroll]
        for step in 0..4usize {
            let at = (quad_of_k * 4 + step) * quads;
            let mut b = Array::<Four>::new(groups);
            #[unroll]
            for group in 0..groups {
                let x = unit.x + comptime!(group * tile.across());
                b[group] = unit.pool[right + at + (x ^ quad_of_k)];
            }
            #[unroll]
            for four in 0..fours {
                let a = unit.pool[left + at + ((unit.y * fours + four) ^ quad_of_k)];
                #[unroll]
                for i in 0..4usize {
                    #[unroll]
                    for group in 0..groups {
                        let index = comptime!(((four * 4 + i) * parts + part) * groups + group);
                        sums[index] = fma(Four::new(a.extract(i)), b[group], sums[index]);
                    }
                }
            }
        }
    }
}

/// Puts the unit's part of a tile of scores into shared memory, transposed.
#[cube]
pub(crate) fn store_scores(scores: &Array<Four>, unit: &mut Unit) {
    let tile = comptime!(unit.tile);
    let quads = comptime!(tile.size / 4);
    let fours = comptime!(tile.rows / 4);
    let groups = comptime!(tile.groups());
    #[unroll]
    for group in 0..groups {
        let x = unit.x + comptime!(group * tile.across());
        #[unroll]
        for four in 0..fours {
            #[unroll]
            for j in 0..4usize {
                let mut rows = Four::new(0.0f32);
                #[unroll]
                for i in 0..4usize {
                    let index = comptime!((four * 4 + i) * groups + group);
                    rows.insert(i, scores[index].extract(j));
                }
                let quad = (unit.y * fours + four) ^ (x % 8);
                unit.pool[(x * 4 + j) * quads + quad] = rows;
            }
        }
    }
}

/// Adds the products of the rows of `left` and of `right`, each times its factor, to the unit's part of a tile of scores.
#[cube]
pub(crate) fn dot_products<F: Float, N: Size>(
    left: Side<'_, F, N>,
    right: Side<'_, F, N>,
    sums: &mut Array<Four>,
    unit: &mut Unit,
) {
    let second = comptime!(unit.tile.operand());
    for chunk in 0..left.dim.div_ceil(CHUNK) {
        sync_cube();
        load_transposed(left, chunk, unit, 0usize);
        load_transposed(right, chunk, unit, second);
        sync_cube();
        product(0usize, second, sums, unit, 0usize, 1usize);
    }
}

/// Adds the rows of a tensor, weighted by a tile of scores, to `sums`, which have `parts` parts per row. Unless `all_seen`, rows
/// that are not `seen` count as zeros. Needs a barrier before.
#[cube]
pub(crate) fn add_weighted_rows<F: Float, N: Size>(
    scores: &Array<Four>,
    rows: Side<'_, F, N>,
    all_seen: bool,
    sums: &mut Array<Four>,
    unit: &mut Unit,
    #[comptime] parts: usize,
) {
    let tile = comptime!(unit.tile);
    store_scores(scores, unit);
    let second = comptime!(tile.scores());
    #[unroll]
    for part in 0..parts {
        for half in 0..comptime!(tile.size / CHUNK) {
            sync_cube();
            load_rows(rows, half * CHUNK, all_seen, unit, part);
            sync_cube();
            let first = half * comptime!(tile.operand());
            product(first, second, sums, unit, part, parts);
        }
    }
}

#[cube]
pub(crate) fn zeros(#[comptime] count: usize) -> Array<Four> {
    let mut zeros = Array::<Four>::new(count);
    #[unroll]
    for i in 0..count {
        zeros[i] = Four::new(0.0f32);
    }
    zeros
}

/// Sets the flag of every column to 0.
#[cube]
pub(crate) fn clear_flags(unit: &mut Unit) {
    let tile = comptime!(unit.tile);
    #[unroll]
    for round in 0..comptime!(tile.size.div_ceil(tile.units())) {
        let at = UNIT_POS as usize + comptime!(round * tile.units());
        if at < tile.size {
            unit.seen[at] = 0u32;
        }
    }
}
