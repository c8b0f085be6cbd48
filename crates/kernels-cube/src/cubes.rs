//! How many cubes a call should have, and which heads may therefore share one.

use burn_attn_kernels_cpu::Problem;
use cubecl::client::Client;

use crate::{
    Inputs,
    few_queries::shape::MOST_ROWS,
    matrix::shape::{MOST_ROWS_OF_TILE, Matrix},
    operands::dims,
    supports::Pass,
    tile::Tile,
};

/// Cubes that keep a large device busy, two for each of 132 multiprocessors. The device is not asked, so that a call gives the same bits on
/// devices that differ in the number of multiprocessors alone.
pub(crate) const ENOUGH_CUBES: usize = 264;

/// The fewest rows of the other side in a split: with fewer, reading the tile's own rows again costs more than a split gains.
pub(crate) const LEAST_ROWS: usize = 128;

#[cfg(test)]
thread_local! {
    /// Splits in place of those of `Call::splits_of`, which are then enough for any number of heads in a cube.
    pub(crate) static FORCED_SPLITS: core::cell::Cell<Option<usize>> = const { core::cell::Cell::new(None) };
}

/// The tile of a forward pass on matrix units in which several heads of a group have all their queries, so that their keys are read once, and how
/// many heads these are: as many as fit while there are enough cubes. `None` if only one head fits, if kernels of [`few_queries`] have as many rows, and
/// if mask or table differ from head to head, because a tile has one kind.
///
/// [`few_queries`]: crate::few_queries
pub(crate) fn tile_of_heads(
    client: &Client,
    inputs: &Inputs,
    problem: &Problem,
) -> Option<((Tile, Matrix), usize)> {
    let group = problem.group_size();
    let table = inputs.visible_blocks.as_ref().map(|(table, _)| table);
    let hiding = [inputs.masked.as_ref(), table].into_iter().flatten();
    let differ = hiding.map(dims).any(|[_, heads, ..]| heads > 1);
    if differ || 2 * problem.len_q > MOST_ROWS_OF_TILE {
        return None;
    }
    let are_enough = |heads: usize| {
        #[cfg(test)]
        if FORCED_SPLITS.get().is_some() {
            return true;
        }
        let cubes = problem.batch * problem.heads_kv * group.div_ceil(heads);
        // Tiles are split only where that makes at least twice as many cubes.
        let splits = match 2 * cubes > ENOUGH_CUBES {
            true => 1,
            false => problem.len_kv / LEAST_ROWS,
        };
        cubes * splits >= ENOUGH_CUBES
    };
    // From one cube per group on, heads are spread evenly over the cubes.
    (1..group)
        .map(|cubes| group.div_ceil(cubes))
        .filter(|&heads| heads * problem.len_q > MOST_ROWS && are_enough(heads))
        .find_map(|heads| {
            let rows = heads * problem.len_q;
            let as_one = Problem {
                len_q: rows,
                ..*problem
            };
            let (properties, elem) = (client.properties(), inputs.query.elem);
            let found = Matrix::of(properties, &as_one, elem, Pass::Forward);
            let (tile, matrix) = found.filter(|(tile, _)| rows <= tile.height)?;
            Some(((tile, matrix), heads))
        })
}
