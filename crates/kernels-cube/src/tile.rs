//! Tiles of numbers in shared memory, and their products in registers.
//!
//! A tile has `size` rows and as many columns. A unit holds `rows` neighbouring rows of it times `columns` columns, in vectors of four
//! columns; its vectors are as far apart as the tile is wide in units, so that neighbouring units read neighbouring vectors. Shared
//! memory has operands transposed, the shared dimension first: entry `[k][row / 4]` is a vector of four rows, so that a product reads
//! a vector of each side per step. The vectors of one `k` are permuted by `k / 4`, which spreads neighbouring `k` over the banks.

use cubecl::prelude::*;

/// Vectors of shared memory and registers.
pub(crate) type Four = Vector<f32, Const<4>>;

/// Steps of the shared dimension that are in shared memory at a time.
const CHUNK: usize = 32;

/// How a cube is shaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tile {
    /// Rows, and columns, of a tile of scores: 32 or 64. With [`few_queries`](crate::few_queries), only the columns.
    pub(crate) size: usize,
    /// Rows of a unit: 4 or 8, with few queries all of them.
    pub(crate) rows: usize,
    /// Columns of a unit: 4, 8 or 16.
    pub(crate) columns: usize,
}

impl Tile {
    /// Units of a cube.
    pub(crate) fn units(self) -> usize {
        self.size / self.rows * self.across()
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

    /// First column of a unit's vector `group`, less that of its first.
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

    /// Vectors of shared memory: a tile of scores, and an operand that it is multiplied with.
    pub(crate) fn pool(self) -> usize {
        self.scores() + self.operand()
    }

    /// Tiles that cover a dimension of a head.
    pub(crate) fn cover(self, dim: usize) -> usize {
        dim.div_ceil(self.size)
    }

    /// Bytes of shared memory of a cube, the flags of seen columns included.
    pub(crate) fn bytes(self) -> usize {
        16 * self.pool() + 4 * self.size
    }
}

/// Where this unit's part of a tile begins.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct UnitOf {
    /// Group of `rows` rows.
    pub(crate) y: usize,
    /// First of its groups of four columns.
    pub(crate) x: usize,
}

/// The head of this cube, counting through all batch items. The grid is rounded up: extra cubes recompute the last head and write the same
/// bits.
#[cube]
pub(crate) fn head_of_cube(heads_of_batch: u32) -> usize {
    (CUBE_POS_Z * CUBE_COUNT_Y + CUBE_POS_Y).min(heads_of_batch - 1) as usize
}

/// 32 neighbouring units are four groups of rows times eight of columns, or eight times four, so that they read few different vectors.
#[cube]
pub(crate) fn unit_of(#[comptime] tile: Tile) -> UnitOf {
    let unit = UNIT_POS as usize;
    let lane = unit % 32;
    let block = unit / 32;
    let x = comptime!(tile.across().min(8));
    let across = comptime!(tile.across() / x);
    UnitOf {
        y: block / across * comptime!(32 / x) + lane / x,
        x: block % across * x + lane % x,
    }
}

/// A matrix `[rows, dim]` in a tensor.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct Rows {
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
}

/// The rows of a head of a `[batch, heads, len, dim]` tensor, from `first` on.
#[cube]
pub(crate) fn rows_of<F: Float, N: Size>(
    tensor: &Tensor<Vector<F, N>>,
    batch: usize,
    head: usize,
    first: usize,
) -> Rows {
    Rows {
        base: batch * tensor.stride(0) + head * tensor.stride(1),
        stride: tensor.stride(2),
        first,
        end: tensor.shape(2),
        dim: tensor.shape(3),
    }
}

/// Numbers `column .. column + 4` of a row as f32, zeros where there are none or `wanted` is false.
///
/// It always reads, if need be something else: a branch around a read would make the next wait for it.
#[cube]
pub(crate) fn load_four<F: Float, N: Size>(
    tensor: &Tensor<Vector<F, N>>,
    rows: Rows,
    row: usize,
    column: usize,
    wanted: bool,
) -> Four {
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

/// Puts columns `chunk * CHUNK ..` of the tile's rows into shared memory, transposed, times `factor`: `[CHUNK][size / 4]`.
#[cube]
fn load_transposed<F: Float, N: Size>(
    tensor: &Tensor<Vector<F, N>>,
    rows: Rows,
    chunk: usize,
    factor: f32,
    pool: &mut Shared<[Four]>,
    #[comptime] to: usize,
    #[comptime] tile: Tile,
) {
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
                read[i] = load_four::<F, N>(tensor, rows, row, column, true) * Four::new(factor);
            }
            #[unroll]
            for j in 0..4usize {
                let mut across = Four::new(0.0f32);
                #[unroll]
                for i in 0..4usize {
                    across.insert(i, read[i].extract(j));
                }
                pool[to + (quad_of_k * 4 + j) * quads + (quad ^ quad_of_k)] = across;
            }
        }
    }
}

/// Puts `CHUNK` rows of the tile from `skip` on, columns `part * size ..`, into shared memory: `[CHUNK][size / 4]`. Rows that
/// are not `seen` become zeros, whatever they hold.
#[cube]
fn load_rows<F: Float, N: Size>(
    tensor: &Tensor<Vector<F, N>>,
    rows: Rows,
    skip: usize,
    #[comptime] part: usize,
    seen: &Shared<[u32]>,
    all_seen: bool,
    pool: &mut Shared<[Four]>,
    #[comptime] tile: Tile,
) {
    let quads = comptime!(tile.size / 4);
    let rounds = comptime!(tile.operand() / tile.units());
    #[unroll]
    for round in 0..rounds {
        let at = UNIT_POS as usize + comptime!(round * tile.units());
        let quad = at % quads;
        let k = at / quads;
        let row = rows.first + skip + k;
        let column = comptime!(part * tile.size) + quad * 4;
        let wanted = all_seen || seen[skip + k] != 0;
        let numbers = load_four::<F, N>(tensor, rows, row, column, wanted);
        pool[comptime!(tile.scores()) + k * quads + (quad ^ (k / 4))] = numbers;
    }
}

/// Adds the product over one chunk to part `part` of every row of `sums`, which has `parts` parts per row.
#[cube]
fn product(
    pool: &mut Shared<[Four]>,
    left: usize,
    #[comptime] right: usize,
    sums: &mut Array<Four>,
    #[comptime] part: usize,
    #[comptime] parts: usize,
    unit: UnitOf,
    #[comptime] tile: Tile,
) {
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
                b[group] = pool[right + at + (x ^ quad_of_k)];
            }
            #[unroll]
            for four in 0..fours {
                let a = pool[left + at + ((unit.y * fours + four) ^ quad_of_k)];
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
pub(crate) fn store_scores(
    scores: &Array<Four>,
    pool: &mut Shared<[Four]>,
    unit: UnitOf,
    #[comptime] tile: Tile,
) {
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
                pool[(x * 4 + j) * quads + quad] = rows;
            }
        }
    }
}

/// Adds the products of the rows of `left` and of `right`, each times its factor, to the unit's part of a tile of scores.
#[cube]
pub(crate) fn dot_products<F: Float, N: Size>(
    left: &Tensor<Vector<F, N>>,
    left_rows: Rows,
    left_factor: f32,
    right: &Tensor<Vector<F, N>>,
    right_rows: Rows,
    right_factor: f32,
    sums: &mut Array<Four>,
    pool: &mut Shared<[Four]>,
    unit: UnitOf,
    #[comptime] tile: Tile,
) {
    let second = comptime!(tile.operand());
    for chunk in 0..left_rows.dim.div_ceil(CHUNK) {
        sync_cube();
        load_transposed::<F, N>(left, left_rows, chunk, left_factor, pool, 0usize, tile);
        load_transposed::<F, N>(right, right_rows, chunk, right_factor, pool, second, tile);
        sync_cube();
        product(pool, 0usize, second, sums, 0usize, 1usize, unit, tile);
    }
}

/// Adds the rows of a tensor, weighted by a tile of scores, to `sums`, which have `parts` parts per row. Rows that are not `seen` count
/// as zeros. Needs a barrier before.
#[cube]
pub(crate) fn add_weighted_rows<F: Float, N: Size>(
    scores: &Array<Four>,
    tensor: &Tensor<Vector<F, N>>,
    rows: Rows,
    seen: &Shared<[u32]>,
    all_seen: bool,
    sums: &mut Array<Four>,
    #[comptime] parts: usize,
    pool: &mut Shared<[Four]>,
    unit: UnitOf,
    #[comptime] tile: Tile,
) {
    store_scores(scores, pool, unit, tile);
    let second = comptime!(tile.scores());
    #[unroll]
    for part in 0..parts {
        for half in 0..comptime!(tile.size / CHUNK) {
            sync_cube();
            load_rows::<F, N>(tensor, rows, half * CHUNK, part, seen, all_seen, pool, tile);
            sync_cube();
            let first = half * comptime!(tile.operand());
            product(pool, first, second, sums, part, parts, unit, tile);
        }
    }
}

/// Sets every number to zero.
#[cube]
pub(crate) fn clear(sums: &mut Array<Four>, #[comptime] count: usize) {
    #[unroll]
    for i in 0..count {
        sums[i] = Four::new(0.0f32);
    }
}

/// Sets the flag of every column to 0.
#[cube]
pub(crate) fn clear_flags(flags: &mut Shared<[u32]>, #[comptime] tile: Tile) {
    #[unroll]
    for round in 0..comptime!(tile.size.div_ceil(tile.units())) {
        let at = UNIT_POS as usize + comptime!(round * tile.units());
        if at < tile.size {
            flags[at] = 0u32;
        }
    }
}
