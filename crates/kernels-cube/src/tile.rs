//! Tiles of numbers: their sizes, what a unit holds, and the tensors that they are read from.
//!
//! A tile has `height` rows and `size` columns, which are equal except on [`matrix`](crate::matrix) units. A unit holds `rows` neighbouring rows times
//! `columns` columns, in vectors of four columns. Between two vectors of a unit are those of the other units of the row: neighbouring units read
//! neighbouring vectors.

use cubecl::prelude::*;

/// Vectors of shared memory and registers.
pub(crate) type Four = Vector<f32, Const<4>>;

/// Four numbers of a tensor.
pub(crate) type Quad<F> = Vector<F, Const<4>>;

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
    /// Whether a chunk of operands is read while the one before is multiplied, where registers suffice. Not on [`matrix`](crate::matrix) units, which have
    /// a field of their own for tiles.
    pub(crate) ahead: bool,
}

impl Tile {
    /// `size` rows and columns, which are read ahead.
    pub(crate) const fn square(size: usize, rows: usize, columns: usize) -> Self {
        Self {
            height: size,
            size,
            rows,
            columns,
            ahead: true,
        }
    }

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

    /// Words with a flag of each pair of a unit.
    pub(crate) fn words_of_flags(self) -> usize {
        self.vectors_per_unit().div_ceil(8)
    }

    /// The word that has the flags of the pairs of a row of a unit with columns `group`, and the first of their four bits. The flags of a group's rows,
    /// of which there are 1, 2, 4 or 8, or fewer than 8 with one group, are in one word.
    pub(crate) fn flags(self, row: usize, group: usize) -> (usize, usize) {
        let vector = group * self.rows + row;
        (vector / 8, vector % 8 * 4)
    }

    /// Columns from a unit's first vector to its vector `group`.
    pub(crate) fn skip(self, group: usize) -> usize {
        group * self.across() * 4
    }

    /// Steps of the shared dimension that are in shared memory at a time: many units copy a longer chunk at once, of which only one fits.
    pub(crate) fn chunk(self) -> usize {
        if self.units() < UNTILED_UNITS { 16 } else { 32 }
    }

    /// Chunks in shared memory: with two, one is written while the other is read.
    pub(crate) fn buffers(self) -> usize {
        32 / self.chunk()
    }

    /// Vectors of a chunk of one operand in shared memory.
    pub(crate) fn of_chunk(self) -> usize {
        self.chunk() * self.size / 4
    }

    /// Vectors of one operand in shared memory.
    pub(crate) fn operand(self) -> usize {
        self.buffers() * self.of_chunk()
    }

    /// Squares of four rows and four columns of a chunk of one operand.
    pub(crate) fn squares(self) -> usize {
        self.of_chunk() / 4
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
