//! Parts of a bias: which tiles a cube adds up for its gradient, and where their sums go.

use burn_attn_kernels_cpu::Problem;
use cubecl::prelude::*;

use crate::{
    Operand,
    operands::dims,
    score::sum_of,
    scoring::{Config, Scoring},
    share::{Share, Tiles, shared},
    tile::{Four, Unit},
    visible::{Place, place, tiles_of_keys},
};

/// What a cube adds up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Sums {
    /// The tiles of a diagonal, along the diagonals in them.
    pub(crate) diagonal: bool,
    /// All batch items, heads, queries or keys.
    pub(crate) batches: bool,
    pub(crate) heads: bool,
    pub(crate) queries: bool,
    pub(crate) keys: bool,
}

impl Sums {
    /// The sums for a dense bias, from the bias or its gradient.
    pub(crate) fn of(bias: &Operand, problem: &Problem) -> Self {
        let [batch, heads, len_q, len_kv] = dims(bias);
        Self {
            diagonal: false,
            batches: batch < problem.batch,
            heads: heads < problem.heads_q,
            queries: len_q < problem.len_q,
            keys: len_kv < problem.len_kv,
        }
    }
}

/// The part of a bias that a cube has, and the tiles that it was added to: of neighbouring batch items, heads, tiles of queries and tiles of keys, in
/// this order.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct Part {
    /// Head of the gradient, counting through its batch items, and tile of this head.
    head: usize,
    tile: usize,
    len_q: usize,
    len_kv: usize,
    first_item: usize,
    first_head: usize,
    heads: usize,
    first_q: usize,
    count_q: usize,
    first_kv: usize,
    count_kv: usize,
    /// This cube's share of the tiles.
    tiles: Tiles,
    /// The rows that these are in: the tiles of a row have the same queries of one head.
    pub(crate) rows: Tiles,
}

/// The part of this cube, in a grid of parts of a head by heads of the gradient.
#[cube]
pub(crate) fn part_of_bias<F: Float, N: Size>(
    gradient: &mut Tensor<f32>,
    query: &Tensor<Vector<F, N>>,
    key: &Tensor<Vector<F, N>>,
    tiles_of_head: u32,
    #[comptime] summed: Sums,
    #[comptime] config: Config,
) -> Part {
    let size = comptime!(config.tile.size);
    let (len_q, len_kv) = (query.shape(2), key.shape(2));
    let tiles_q = len_q.div_ceil(size);
    let tiles_kv = len_kv.div_ceil(size);
    // Head, batch item and split of this cube. The grid is rounded up: extra cubes repeat the last head.
    let cube = CUBE_POS_Y * CUBE_COUNT_X + CUBE_POS_X;
    let own_heads = gradient.shape(1);
    let own_head = ((cube / tiles_of_head) as usize).min(gradient.shape(0) * own_heads - 1);
    let own_tile = (cube % tiles_of_head) as usize;
    let (mut own_items, mut items) = (query.shape(0), 1usize.runtime());
    if comptime!(summed.batches) {
        (own_items, items) = (1usize.runtime(), query.shape(0));
    }
    let mut heads = 1usize.runtime();
    if comptime!(summed.heads) {
        heads = query.shape(1);
    }
    let own_item = own_head / own_heads;
    let share = Share {
        tile: own_tile,
        split: own_item / own_items,
        splits: gradient.shape(0) / own_items,
    };
    let (mut first_q, mut count_q) = (0usize.runtime(), tiles_q);
    let (mut first_kv, mut count_kv) = (0usize.runtime(), 1usize.runtime());
    if comptime!(summed.diagonal) {
        first_q = (own_tile + 1).max(tiles_kv) - tiles_kv;
        count_q = tiles_q.min(own_tile + 1) - first_q;
    } else if comptime!(summed.keys) {
        count_kv = tiles_kv;
        if comptime!(!summed.queries) {
            first_q = own_tile;
            count_q = 1usize.runtime();
        }
    } else if comptime!(summed.queries) {
        first_kv = own_tile;
    } else {
        first_kv = own_tile % tiles_kv;
        first_q = own_tile / tiles_kv;
        count_q = 1usize.runtime();
    }
    let all = Tiles {
        start: 0usize.runtime(),
        end: items * heads * count_q * count_kv,
    };
    let tiles = shared(all, share, 0usize, 1usize, config);
    Part {
        head: own_head,
        tile: own_tile,
        len_q,
        len_kv,
        // 0 where all are added up: the gradient has one.
        first_item: own_item % own_items,
        first_head: own_head % own_heads,
        heads,
        first_q,
        count_q,
        first_kv,
        count_kv,
        tiles,
        rows: Tiles {
            start: tiles.start / count_kv,
            end: tiles.end.div_ceil(count_kv),
        },
    }
}

/// A row of a part's tiles.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct Row {
    pub(crate) place: Place,
    pub(crate) tile_q: usize,
    /// The cube's tiles of keys that some query sees, by position and lengths.
    pub(crate) tiles: Tiles,
}

/// Row `number` of a part.
#[cube]
pub(crate) fn row_of_part<M: Numeric>(
    part: Part,
    number: usize,
    scoring: &Scoring<M>,
    #[comptime] summed: Sums,
    #[comptime] config: Config,
) -> Row {
    let size = comptime!(config.tile.size);
    let tile_q = part.first_q + number % part.count_q;
    let head = part.first_head + number / part.count_q % part.heads;
    let batch = part.first_item + number / part.count_q / part.heads;
    let place = place::<M>(scoring, batch, head, part.len_q, part.len_kv);
    let seen = tiles_of_keys::<M>(scoring, place, tile_q * size, config);
    let mut from = part.first_kv;
    if comptime!(summed.diagonal) {
        from = tile_q + part.len_kv.div_ceil(size) - 1 - part.tile;
    }
    let before = number * part.count_kv;
    Row {
        place,
        tile_q,
        tiles: Tiles {
            start: seen.start.max(from + part.tiles.start.max(before) - before),
            end: seen
                .end
                .min(from + (part.tiles.end - before).min(part.count_kv)),
        },
    }
}

/// Writes what the units have added up.
#[cube]
pub(crate) fn store_part(
    sums: &Array<Four>,
    part: Part,
    gradient: &mut Tensor<f32>,
    unit: &mut Unit,
    #[comptime] summed: Sums,
    #[comptime] config: Config,
) {
    let tile = comptime!(config.tile);
    let (size, units) = comptime!((tile.size, tile.units()));
    let groups = comptime!(tile.groups());
    // An odd stride spreads rows over the banks.
    let stride = comptime!(size / 4 + 1);
    let (out_q, out_kv) = (gradient.shape(2), gradient.shape(3));
    if comptime!(summed.diagonal || summed.queries || summed.keys) {
        sync_cube();
        #[unroll]
        for index in 0..comptime!(tile.vectors_per_unit()) {
            let (i, group) = comptime!((index / groups, index % groups));
            let row = unit.y * tile.rows + i;
            unit.pool[row * stride + unit.x + comptime!(tile.skip(group) / 4)] = sums[index];
        }
        sync_cube();
    }
    let mut index = UNIT_POS as usize;
    if comptime!(summed.diagonal) {
        let to = (part.head * out_q + part.tile) * comptime!(2 * size);
        while index < comptime!(2 * size - 1) {
            let mut sum = f32::new(0.0);
            for column in 0..size {
                // Row `index - (size - 1) + column`, if it exists.
                let row = index + column + 1;
                if row >= size && row < comptime!(2 * size) {
                    let four = unit.pool[(row - size) * stride + column / 4];
                    sum += four.extract_dynamic(column % 4);
                }
            }
            gradient[to + index] = sum;
            index += units;
        }
    } else if comptime!(summed.keys) {
        let (first, to) = (part.first_q * size, part.head * out_q);
        while index < size {
            let mut sum = Four::new(0.0f32);
            for quad in 0..comptime!(size / 4) {
                sum += unit.pool[index * stride + quad];
            }
            let sum = sum_of(sum);
            if comptime!(summed.queries) {
                unit.pool[index * stride] = Four::new(sum);
            } else if first + index < part.len_q {
                gradient[to + first + index] = sum;
            }
            index += units;
        }
        if comptime!(summed.queries) {
            sync_cube();
            if UNIT_POS == 0 {
                let mut total = f32::new(0.0);
                for row in 0..size {
                    total += unit.pool[row * stride].extract(0usize);
                }
                gradient[part.head] = total;
            }
        }
    } else if comptime!(summed.queries) {
        let (first, to) = (part.first_kv * size, part.head * out_kv);
        while index < size {
            if first + index < part.len_kv {
                let mut sum = f32::new(0.0);
                for row in 0..size {
                    let four = unit.pool[row * stride + index / 4];
                    sum += four.extract_dynamic(index % 4);
                }
                gradient[to + first + index] = sum;
            }
            index += units;
        }
    } else {
        #[unroll]
        for index in 0..comptime!(tile.vectors_per_unit()) {
            let (i, group) = comptime!((index / groups, index % groups));
            let row = part.first_q * size + unit.y * tile.rows + i;
            let column = part.first_kv * size + unit.x * 4 + comptime!(tile.skip(group));
            #[unroll]
            for j in 0..4usize {
                if row < part.len_q && column + j < part.len_kv {
                    let to = (part.head * out_q + row) * out_kv;
                    gradient[to + column + j] = sums[index].extract(j);
                }
            }
        }
    }
}
