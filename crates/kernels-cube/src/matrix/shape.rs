//! How a device multiplies matrices, and what a cube keeps in shared memory.

use std::{ffi::OsString, sync::LazyLock};

use burn_attn_kernels_cpu::Problem;
use cubecl::ir::{DeviceProperties, ElemType, FloatKind};

#[cfg(test)]
use crate::supports::FORCED;
use crate::{
    supports::{Pass, WIDEST_VECTOR},
    tile::Tile,
};

/// Rows of operands are padded to a multiple of this, which every fragment size divides.
const WHOLE: usize = 16;

/// The widest head of which two sums fit into registers, and two operands into 48 KiB of shared memory beside a square of scores.
const WIDEST_OF_TWO: usize = 64;

/// Rows of the largest tile.
pub(crate) const MOST_ROWS_OF_TILE: usize = 128;

/// The widest head of which two operands of half precision fit into 48 KiB beside a tile of 128 x 32.
const WIDEST_OF_TWO_OPERANDS: usize = 128;

/// What the environment says of matrix units.
static SWITCH: LazyLock<Option<OsString>> =
    LazyLock::new(|| std::env::var_os("BURN_ATTN_MATRIX_UNITS"));

/// What a test forces, to run what its device would not choose.
#[cfg(test)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Forced {
    /// Type of two numbers as which one in f32 is multiplied.
    pub(crate) pieces: Option<ElemType>,
    /// No factors for the range of f16, as with operands of any other type.
    pub(crate) unscaled: bool,
    /// Unrolled loops, and products of several columns at a time, as where planes have more than eight units. Implies `ahead`.
    pub(crate) unrolled: bool,
    /// Whole tiles through registers, as where planes have more than eight units.
    pub(crate) ahead: bool,
    /// One operand in shared memory at a time, where the head is wide enough for such a tile.
    pub(crate) one_operand: bool,
}

#[cfg(test)]
thread_local! {
    pub(crate) static FORCED_MATRIX: core::cell::Cell<Forced> = core::cell::Cell::default();
}

fn is_switched(to: &str) -> bool {
    SWITCH.as_ref().is_some_and(|value| value == to)
}

/// As which operands matrix units multiply numbers of a type, the best first: their type, and in how many pieces.
fn operands_of(elem: ElemType) -> Vec<(ElemType, usize)> {
    let [f32, tf32] = [FloatKind::F32, FloatKind::TF32].map(ElemType::Float);
    #[cfg(test)]
    if let Some(piece) = FORCED_MATRIX.get().pieces.filter(|_| elem == f32) {
        return vec![(piece, 2)];
    }
    match elem {
        elem if elem != f32 => vec![(elem, 1), (f32, 1)],
        _ if is_switched("tf32") => vec![(f32, 1), (tf32, 2)],
        _ => vec![(f32, 1)],
    }
}

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
    /// Whether loops over parts of a tile are unrolled: with two pieces, registers do not suffice for what compilers read ahead then; in drivers in
    /// software, compile time grows with the square of a block's length.
    pub(crate) unrolled: bool,
    /// Whether whole tiles go to shared memory through registers, which are read before they are needed if there are enough registers. Not in drivers in
    /// software, where nothing overlaps: copies are loops there, as short a program as possible.
    pub(crate) ahead: bool,
    /// Columns of fragments of a tile of scores that are summed at a time: products of different columns do not wait for each other.
    pub(crate) together: usize,
    /// Operands in shared memory at a time: 1 or 2.
    pub(crate) operands: usize,
    /// Type of operands.
    pub(crate) elem: ElemType,
    /// Operands that a number is the sum of: 1, or 2 with more digits. Of the products of all pieces, that of the last two is left out.
    pub(crate) pieces: usize,
    /// Whether weights and gradients of scores need a factor: the range of f16 is too small for them.
    pub(crate) scaled: bool,
    /// Whether weights multiply rows. For gradients of biases they do not, and no tile of weights is in shared memory.
    pub(crate) weighs: bool,
    /// Numbers of a row of queries and keys, and of a row of values, padded to whole products.
    pub(crate) dim_qk: usize,
    pub(crate) dim_v: usize,
}

impl Matrix {
    /// The tile and the products of a call. `None` if matrix units are turned off, and if the device has none for `elem`, planes of several sizes or of
    /// one that is no power of two, or no room for a tile.
    pub(crate) fn of(
        properties: &DeviceProperties,
        problem: &Problem,
        elem: ElemType,
        pass: Pass,
    ) -> Option<(Tile, Self)> {
        let hardware = &properties.hardware;
        let plane = hardware.plane_size_min as usize;
        let f32 = ElemType::Float(FloatKind::F32);
        // A plane shares its fragments, so the size of a plane must be known when the kernel is compiled. Units of a row exchange numbers in pairs.
        // Whether plane operations are listed is not asked: every device with matrix units has them, but CubeCL lists none of a driver in software.
        let is_fixed = hardware.plane_size_min == hardware.plane_size_max;
        let is_known = is_fixed && plane.is_power_of_two();
        let dim = problem.dim_qk.max(problem.dim_v);
        #[cfg(test)]
        if FORCED.get().is_some() {
            return None;
        }
        if is_switched("off") || !is_known {
            return None;
        }
        let size_of = |elem: ElemType| {
            let listed = properties.features.matmul.cmma.iter();
            listed
                .filter(|it| [it.a_type, it.b_type, it.cd_type] == [elem, elem, f32])
                .map(|it| [it.m, it.n, it.k].map(|size| size as usize))
                .filter(|&[m, n, k]| m == n && [m, k].iter().all(|size| [8, 16].contains(size)))
                .filter(|&[m, ..]| plane.is_multiple_of(m))
                .max()
        };
        let found = operands_of(elem)
            .into_iter()
            .find_map(|(elem, pieces)| Some((elem, pieces, size_of(elem)?)));
        let (elem, pieces, [m, n, k]) = found?;
        let ahead = plane > WIDEST_VECTOR;
        let unrolled = ahead && pieces == 1;
        let scaled = elem == ElemType::Float(FloatKind::F16);
        let most_operands = 2;
        #[cfg(test)]
        let (ahead, unrolled, scaled, most_operands) = {
            let forced = FORCED_MATRIX.get();
            let unrolled = unrolled || forced.unrolled;
            let ahead = ahead || forced.ahead || unrolled;
            let most_operands = if forced.one_operand { 1 } else { most_operands };
            (ahead, unrolled, scaled && !forced.unscaled, most_operands)
        };
        // More columns would not fit into registers beside two own operands of a wide head.
        let most_together = match (unrolled, pass) {
            (false, _) => 1,
            (true, Pass::Forward) => usize::MAX,
            (true, _) if dim <= WIDEST_OF_TWO => usize::MAX,
            (true, _) => 2,
        };
        let shapes: &[[usize; 3]] = if pass == Pass::Bias {
            // Squares, whose diagonals are sums: `supports` counts scratch for diagonals of at most 64 rows.
            match dim <= WIDEST_OF_TWO && pieces == 1 {
                true => &[[64, 64, 2], [64, 64, 1], [32, 32, 2]],
                false => &[[64, 64, 1], [32, 32, 1]],
            }
        } else if pieces > 1 {
            &[[64, 32, 1], [32, 32, 1]]
        } else if dim <= WIDEST_OF_TWO {
            &[[MOST_ROWS_OF_TILE, 32, 2], [64, 32, 2], [32, 32, 2]]
        } else if dim <= WIDEST_OF_TWO_OPERANDS {
            &[
                [MOST_ROWS_OF_TILE, 32, 2],
                [64, 64, 1],
                [64, 32, 2],
                [64, 32, 1],
                [32, 32, 1],
            ]
        } else {
            &[[MOST_ROWS_OF_TILE, 32, 1], [64, 32, 1], [32, 32, 1]]
        };
        let len = match pass {
            Pass::KeyAndValue => problem.len_kv,
            _ => problem.len_q,
        };
        shapes
            .iter()
            // No tile of which at least half lies beyond the last row.
            .filter(|&&[rows, ..]| rows == 32 || rows < 2 * len)
            .filter(|&&[.., operands]| operands <= most_operands)
            .map(|&[rows, columns, operands]| Self {
                m,
                n,
                k,
                plane,
                rows,
                columns,
                unrolled,
                ahead,
                together: (columns / n).min(most_together),
                operands,
                elem,
                pieces,
                scaled,
                weighs: pass != Pass::Bias,
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
            ahead: false,
        }
    }

    /// The widest head whose gradients of key and value fit into fragments together.
    pub(crate) fn widest_of_two_sums(self) -> usize {
        match self.pieces {
            1 => WIDEST_OF_TWO,
            _ => 0,
        }
    }

    /// The types of a kernel on matrix units: those of a kernel without, and that of the operands.
    pub(crate) fn types(self, [inputs, mask, result]: [ElemType; 3]) -> [ElemType; 4] {
        [inputs, mask, result, self.elem]
    }

    pub(crate) fn planes(self) -> usize {
        self.rows / self.m
    }

    /// Units of a cube.
    pub(crate) fn units(self) -> usize {
        self.planes() * self.plane
    }

    /// From one row of scores in shared memory to the next, in vectors. An odd number of times 32 bytes spreads over the banks what a plane
    /// writes of a fragment, eight numbers of each of eight rows on NVIDIA's cards, and what eight of its units read, both parts of four rows.
    pub(crate) fn score_stride(self) -> usize {
        self.columns / 4 + 2
    }

    /// Bytes of a vector of four operands.
    fn bytes_of_vector(self) -> usize {
        4 * self.elem.size()
    }

    /// From one row of `dim` operands to the next, in vectors: 16 bytes more spread rows over the banks.
    pub(crate) fn stride(self, dim: usize) -> usize {
        dim / 4 + 16 / self.bytes_of_vector()
    }

    /// The first vector of an operand. Where both take turns in one place, the second begins 32 bytes later: otherwise compilers keep the addresses of all
    /// fragments in registers from one product to the next.
    pub(crate) fn operand(self, number: usize) -> usize {
        match self.operands {
            1 => number * 32 / self.bytes_of_vector(),
            _ => number * self.columns * self.stride(self.dim_qk.max(self.dim_v)),
        }
    }

    /// Vectors of all operands in shared memory.
    pub(crate) fn all_operands(self) -> usize {
        self.operand(1) + self.columns * self.stride(self.dim_qk.max(self.dim_v))
    }

    /// Vectors of a tile of weights in shared memory. Without one there is still a vector: an array is not empty.
    pub(crate) fn weights(self) -> usize {
        match self.weighs {
            true => self.rows * self.stride(self.columns),
            false => 1,
        }
    }

    /// Vectors of a tile of scores in shared memory.
    pub(crate) fn pool(self) -> usize {
        self.rows * self.score_stride()
    }

    /// Bytes of shared memory, a flag and two numbers of each column included.
    fn bytes(self) -> usize {
        let vectors = self.pieces * (self.all_operands() + self.weights());
        16 * self.pool() + self.bytes_of_vector() * vectors + 12 * self.columns
    }

    /// Parts as wide as the tile that cover a row of `dim` numbers.
    pub(crate) fn parts(self, dim: usize) -> usize {
        dim.div_ceil(self.columns)
    }
}
