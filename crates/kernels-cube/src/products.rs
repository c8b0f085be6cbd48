//! Products of tiles, in registers.

use cubecl::prelude::*;

use crate::{
    chunks::{buffer, copy_squares, read_rows, rounds, write_rows},
    tile::{Four, Quad, Side, Unit},
};

/// Adds the product over one chunk to part `part` of every row of `sums`, which has `parts` parts per row.
#[cube]
fn product(
    left: usize,
    right: usize,
    sums: &mut Array<Four>,
    unit: &mut Unit,
    #[comptime] part: usize,
    #[comptime] parts: usize,
) {
    let tile = comptime!(unit.tile);
    let quads = comptime!(tile.size / 4);
    let fours = comptime!(tile.rows / 4);
    let groups = comptime!(tile.groups());
    for quad_of_k in 0..comptime!(tile.chunk() / 4) {
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

/// Puts the unit's part of a tile of scores into shared memory, transposed and permuted as the [`chunks`](crate::chunks) that multiply it.
#[cube]
fn store_scores(scores: &Array<Four>, unit: &mut Unit) {
    let tile = comptime!(unit.tile);
    let quads = comptime!(tile.size / 4);
    let fours = comptime!(tile.rows / 4);
    let quads_of_chunk = comptime!(tile.chunk() / 4);
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
                let quad = (unit.y * fours + four) ^ (x % quads_of_chunk);
                unit.pool[(x * 4 + j) * quads + quad] = rows;
            }
        }
    }
}

/// Adds the products of the rows of `left` and of `right`, each times its factor, to the unit's part of a tile of scores. With `tile.ahead`, a chunk is
/// read while the one before is multiplied.
#[cube]
#[allow(
    clippy::collapsible_if,
    reason = "one condition is known at compile time"
)]
pub(crate) fn dot_products<F: Float, N: Size>(
    left: Side<'_, F, N>,
    right: Side<'_, F, N>,
    sums: &mut Array<Four>,
    unit: &mut Unit,
) {
    let tile = comptime!(unit.tile);
    let ahead = comptime!(tile.ahead);
    let chunks = left.dim.div_ceil(comptime!(tile.chunk()));
    let mut read = Array::<Quad<F>>::new(comptime!(4 * rounds(tile, 2 * tile.squares())));
    if comptime!(ahead) {
        copy_squares(left, right, 0usize.runtime(), &mut read, unit, false);
        sync_cube();
        copy_squares(left, right, 0usize.runtime(), &mut read, unit, true);
    }
    for chunk in 0..chunks {
        let next = chunk + 1;
        if comptime!(!ahead) {
            sync_cube();
            copy_squares(left, right, chunk, &mut read, unit, false);
            copy_squares(left, right, chunk, &mut read, unit, true);
        }
        sync_cube();
        if comptime!(ahead) {
            if next < chunks {
                copy_squares(left, right, next, &mut read, unit, false);
            }
        }
        let (from_left, from_right) = (buffer(chunk, 0usize, tile), buffer(chunk, 1usize, tile));
        product(from_left, from_right, sums, unit, 0usize, 1usize);
        if comptime!(ahead) {
            if next < chunks {
                if comptime!(tile.buffers() == 1) {
                    sync_cube();
                }
                copy_squares(left, right, next, &mut read, unit, true);
            }
        }
    }
}

/// Adds the rows of a tensor, weighted by a tile of scores, to `sums`, which have `parts` parts per row. Unless `all_seen`, rows
/// that are not `seen` count as zeros. Needs a barrier before. With `tile.ahead`, a chunk is read while the one before is multiplied.
#[cube]
#[allow(
    clippy::collapsible_if,
    reason = "one condition is known at compile time"
)]
pub(crate) fn add_weighted_rows<F: Float, N: Size>(
    scores: &Array<Four>,
    rows: Side<'_, F, N>,
    all_seen: bool,
    sums: &mut Array<Four>,
    unit: &mut Unit,
    #[comptime] parts: usize,
) {
    let tile = comptime!(unit.tile);
    let ahead = comptime!(tile.ahead);
    let chunks = comptime!(tile.size / tile.chunk());
    store_scores(scores, unit);
    let mut read = Array::<Quad<F>>::new(comptime!(rounds(tile, tile.of_chunk())));
    #[unroll]
    for part in 0..parts {
        if comptime!(ahead) {
            read_rows(rows, 0usize.runtime(), &mut read, part, tile);
            sync_cube();
            write_rows(rows, 0usize.runtime(), all_seen, &read, unit, part);
        }
        for chunk in 0..chunks {
            let next = chunk + 1;
            if comptime!(!ahead) {
                sync_cube();
                read_rows(rows, chunk, &mut read, part, tile);
                write_rows(rows, chunk, all_seen, &read, unit, part);
            }
            sync_cube();
            if comptime!(ahead) {
                if next < chunks {
                    read_rows(rows, next, &mut read, part, tile);
                }
            }
            let left = chunk * comptime!(tile.chunk() * tile.size / 4);
            let right = comptime!(tile.scores()) + buffer(chunk, 0usize, tile);
            product(left, right, sums, unit, part, parts);
            if comptime!(ahead) {
                if next < chunks {
                    if comptime!(tile.buffers() == 1) {
                        sync_cube();
                    }
                    write_rows(rows, next, all_seen, &read, unit, part);
                }
            }
        }
    }
}
