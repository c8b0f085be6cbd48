//! How a device multiplies matrices, and what a cube keeps in shared memory.

use std::sync::LazyLock;

use burn_attn_kernels_cpu::Problem;
use cubecl::ir::{DeviceProperties, ElemType, FloatKind};

use crate::{
    supports::{Pass, WIDEST_VECTOR},
    tile::Tile,
};

/// Rows of operands are padded to a multiple of this, which every fragment size divides.
const WHOLE: usize = 16;

/// The widest head of which two operands fit into shared memory beside the scores.
const WIDEST_OF_TWO: usize = 64;

/// The widest head of which 64 rows of an operand fit into shared memory beside 64 x 64 scores.
const WIDEST_OF_SQUARES: usize = 128;

/// Whether the environment turns matrix units off.
static ARE_OFF: LazyLock<bool> = LazyLock::new(|| {
    std::env::var_os("BURN_ATTN_MATRIX_UNITS").is_some_and(|value| value == "off")
});

/// The matrix products of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Matrix {
    /// Sizes of one product, `[m, k] · [k, n]`.
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    /// Units of a plane.
    pub(crate) plane: usize,
    /// Rows and columns of a tile of scores.
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    /// Whether loops over parts of a tile are unrolled: in drivers in software, compile time grows with the square of a block's length.
    pub(crate) unrolled: bool,
    /// Columns of fragments of a tile of scores that are summed at a time: products of different columns do not wait for each other.
    pub(crate) together: usize,
    /// Operands in shared memory at a time: 1 or 2.
    pub(crate) operands: usize,
    /// Whether weights and gradients of scores need a factor: the range of f16 is too small for them.
    pub(crate) scaled: bool,
    /// Numbers of a row of queries and keys, and of a row of values, padded to whole products.
    pub(crate) dim_qk: usize,
    pub(crate) dim_v: usize,
}

impl Matrix {
    /// The tile and the products of a call. `None` in f32, for the gradients of biases, if matrix units are turned off, and if the
    /// device has none for `elem`, planes of several sizes, or no room for a tile.
    pub(crate) fn of(
        properties: &DeviceProperties,
        problem: &Problem,
        elem: ElemType,
        pass: Pass,
    ) -> Option<(Tile, Self)> {
        let hardware = &properties.hardware;
        let plane = hardware.plane_size_min as usize;
        let f32 = ElemType::Float(FloatKind::F32);
        let is_half = elem != f32;
        // A plane shares its fragments, so the size of a plane must be known when the kernel is compiled.
        let is_fixed = hardware.plane_size_min == hardware.plane_size_max;
        let dim = problem.dim_qk.max(problem.dim_v);
        if *ARE_OFF || pass == Pass::Bias || !is_half || !is_fixed {
            return None;
        }
        let listed = properties.features.matmul.cmma.iter();
        let sizes = listed
            .filter(|it| it.a_type == elem && it.b_type == elem && it.cd_type == f32)
            .map(|it| [it.m, it.n, it.k].map(|size| size as usize));
        let [m, n, k] = sizes
            .filter(|&[m, n, k]| m == n && n == k && [8, 16].contains(&m))
            .filter(|&[m, ..]| plane.is_multiple_of(m))
            .max()?;
        let unrolled = plane > WIDEST_VECTOR;
        // More columns would not fit into registers beside two own operands of a wide head.
        let most_together = match (unrolled, pass) {
            (false, _) => 1,
            (true, Pass::Forward) => usize::MAX,
            (true, _) if dim <= WIDEST_OF_TWO => usize::MAX,
            (true, _) => 2,
        };
        let shapes: &[[usize; 3]] = if dim <= WIDEST_OF_TWO {
            &[[128, 32, 2], [64, 32, 2], [32, 32, 2]]
        } else if dim <= WIDEST_OF_SQUARES {
            &[[64, 64, 1], [32, 32, 1]]
        } else {
            &[[64, 32, 1], [32, 32, 1]]
        };
        let len = match pass {
            Pass::KeyAndValue => problem.len_kv,
            _ => problem.len_q,
        };
        shapes
            .iter()
            // No tile of which at least half lies beyond the last row.
            .filter(|&&[rows, ..]| rows == 32 || rows < 2 * len)
            .map(|&[rows, columns, operands]| Self {
                m,
                n,
                k,
                plane,
                rows,
                columns,
                unrolled,
                together: (columns / n).min(most_together),
                operands,
                scaled: elem == ElemType::Float(FloatKind::F16),
                dim_qk: problem.dim_qk.next_multiple_of(WHOLE),
                dim_v: problem.dim_v.next_multiple_of(WHOLE),
            })
            .map(|matrix| (matrix.tile(), matrix))
            .find(|(tile, matrix)| {
                tile.columns.is_multiple_of(4)
                    && matrix.bytes() <= hardware.max_shared_memory_size
                    && tile.units() <= hardware.max_units_per_cube as usize
            })
    }

    /// A unit has a part of one row.
    fn tile(self) -> Tile {
        Tile {
            height: self.rows,
            size: self.columns,
            rows: 1,
            columns: self.m * self.columns / self.plane,
        }
    }

    pub(crate) fn planes(self) -> usize {
        self.rows / self.m
    }

    /// From one row of scores in shared memory to the next, in vectors: an odd stride spreads rows over the banks.
    pub(crate) fn score_stride(self) -> usize {
        self.columns / 4 + 1
    }

    /// From one row of `dim` numbers in half precision to the next, in vectors: 16 bytes more spread rows over the banks.
    pub(crate) fn stride(self, dim: usize) -> usize {
        dim / 4 + 2
    }

    /// The first vector of an operand.
    pub(crate) fn operand(self, number: usize) -> usize {
        number % self.operands * self.columns * self.stride(self.dim_qk.max(self.dim_v))
    }

    /// Vectors of all operands in shared memory, which must also hold the cube's own rows.
    pub(crate) fn all_operands(self) -> usize {
        self.rows.max(self.operands * self.columns) * self.stride(self.dim_qk.max(self.dim_v))
    }

    pub(crate) fn weights(self) -> usize {
        self.rows * self.stride(self.columns)
    }

    /// The first vector of the statistics of the columns, behind the scores.
    pub(crate) fn statistics(self) -> usize {
        self.rows * self.score_stride()
    }

    /// Vectors of the pool: a tile of scores, and two statistics of each column.
    pub(crate) fn pool(self) -> usize {
        self.statistics() + self.columns / 2
    }

    /// Bytes of shared memory, a flag and two numbers of each column included.
    fn bytes(self) -> usize {
        let halves = self.all_operands() + self.weights();
        16 * self.pool() + 8 * halves + 12 * self.columns + 4 * self.planes()
    }

    /// Parts as wide as the tile that cover a row of `dim` numbers.
    pub(crate) fn parts(self, dim: usize) -> usize {
        dim.div_ceil(self.columns)
    }
}
