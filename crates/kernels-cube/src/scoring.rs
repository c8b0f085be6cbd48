//! What a kernel is compiled for, and the options that change scores.

use cubecl::prelude::*;

use crate::{matrix::shape::Matrix, tile::Tile};

/// The least finite number, which marks a hidden score: only −∞ is lower.
#[cube]
pub(crate) fn lowest_finite() -> f32 {
    f32::new(f32::MIN)
}

#[cube]
pub(crate) fn highest_finite() -> f32 {
    f32::new(f32::MAX)
}

/// What the kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Config {
    pub(crate) tile: Tile,
    /// The products on matrix units, if the kernel uses them.
    pub(crate) matrix: Option<Matrix>,
    /// Tiles that cover a row of queries and keys, and a row of values.
    pub(crate) parts_qk: usize,
    pub(crate) parts_v: usize,
    /// Heads that share keys and have all their queries in one tile; 1 elsewhere than in [`few_queries`](crate::few_queries) and in the forward
    /// pass on matrix units.
    pub(crate) heads: usize,
    pub(crate) softcap: bool,
    pub(crate) dropout: bool,
    /// Whether rows of tiles are keys.
    pub(crate) keys_in_rows: bool,
    /// Whether several cubes share a tile, and write partial results in f32.
    pub(crate) split: bool,
}

impl Config {
    /// Rows of a unit per head. Fewer than all its rows only in [`few_queries`](crate::few_queries), where the rest belong to the next heads.
    pub(crate) fn queries(self) -> usize {
        self.tile.rows.div_ceil(self.heads)
    }

    pub(crate) fn tile_queries(self) -> usize {
        match self.keys_in_rows {
            true => self.tile.size,
            false => self.tile.height,
        }
    }

    pub(crate) fn tile_keys(self) -> usize {
        match self.keys_in_rows {
            true => self.tile.height,
            false => self.tile.size,
        }
    }
}

/// The options of a call: from dot products to scores, and dropout.
#[derive(CubeType, CubeLaunch)]
pub(crate) struct Scoring<M: Numeric> {
    /// `[batch, heads_q, len_q, len_kv]`, with strides of 0 where it is broadcast.
    pub(crate) bias: ComptimeOption<OwnedTensor<f32>>,
    pub(crate) distance_bias: ComptimeOption<OwnedTensor<f32>>,
    /// As `bias`; hides where not 0.
    pub(crate) masked: ComptimeOption<OwnedTensor<M>>,
    /// `[batch, heads_q, blocks of queries, blocks of keys]`, broadcast like `bias`; hides where 0.
    pub(crate) visible_blocks: ComptimeOption<OwnedTensor<M>>,
    pub(crate) key_lengths: ComptimeOption<OwnedTensor<i32>>,
    /// How many first keys of a batch item position does not hide.
    pub(crate) first_keys: ComptimeOption<OwnedTensor<i32>>,
    pub(crate) query_offsets: ComptimeOption<OwnedTensor<i32>>,
    pub(crate) segments: ComptimeOption<OwnedTensor<i32>>,
    /// `[batch, heads_q, tiles of queries, tiles of keys]`, broadcast like `bias`: the kind of each tile.
    pub(crate) tile_kinds: ComptimeOption<OwnedTensor<u32>>,
    /// Queries and keys of a block.
    pub(crate) block_queries: u32,
    pub(crate) block_keys: u32,
    pub(crate) scale: f32,
    pub(crate) softcap: f32,
    /// Position of the first query, if there are no query offsets.
    pub(crate) offset: i32,
    /// How many keys before and after its position a query sees.
    pub(crate) left: i32,
    pub(crate) right: i32,
    /// As `right`, for the first keys.
    pub(crate) right_of_first: i32,
    /// The state of dropout that all rows share: the seed is hashed, the indices of a row are not.
    pub(crate) seeded_a: u32,
    pub(crate) seeded_b: u32,
    /// Weights whose 31 random bits are below this are dropped.
    pub(crate) threshold: u32,
    /// Factor on kept weights; see [`keep_scale`](crate::dropout::keep_scale).
    pub(crate) keep_scale: f32,
}
