//! Which pairs of queries and keys are hidden: by position, lengths, segments, mask and table.

use cubecl::prelude::*;

use crate::{
    scoring::{Config, Scoring},
    share::Tiles,
    tile::Unit,
};

/// Bits of a tile's kind: segments, mask and table leave a pair visible, and hide a pair.
pub(crate) const VISIBLE: u32 = 1;
pub(crate) const HIDDEN: u32 = 2;

/// Where a tile is, and what its batch item hides.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct Place {
    pub(crate) batch: usize,
    pub(crate) head: usize,
    pub(crate) len_q: usize,
    pub(crate) len_kv: usize,
    /// Keys from here on are hidden.
    pub(crate) length: i32,
    /// Keys before this one are not hidden by position.
    pub(crate) first_keys: i32,
    /// Position of query 0.
    pub(crate) offset: i32,
}

/// The pairs of queries and keys of a unit.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct Pairs {
    pub(crate) place: Place,
    /// The first row of the unit.
    pub(crate) row: usize,
    /// The first column of the unit.
    pub(crate) column: usize,
    #[cube(comptime)]
    pub(crate) config: Config,
}

/// The pairs of a unit in the tile that begins at `row` and `column`.
#[cube]
pub(crate) fn pairs(
    place: Place,
    unit: &mut Unit,
    row: usize,
    column: usize,
    #[comptime] config: Config,
) -> Pairs {
    let mut place = place;
    let mut row = row + unit.y * config.tile.rows;
    // The tile has all queries of the first head, then those of the next. Rows behind the last head are hidden.
    if comptime!(config.heads > 1) {
        let head = row / place.len_q;
        row = select(head < config.heads, row % place.len_q, place.len_q);
        place.head += head.min(comptime!(config.heads - 1));
    }
    Pairs {
        place,
        row,
        column: column + unit.x * 4,
        config,
    }
}

/// The head of this cube, counting through all batch items. The grid is rounded up: extra cubes recompute the last head and write the same
/// bits.
#[cube]
pub(crate) fn head_of_cube(heads_of_batch: usize) -> usize {
    ((CUBE_POS_Z * CUBE_COUNT_Y + CUBE_POS_Y) as usize).min(heads_of_batch - 1)
}

#[cube]
pub(crate) fn place<M: Numeric>(
    scoring: &Scoring<M>,
    batch: usize,
    head: usize,
    len_q: usize,
    len_kv: usize,
) -> Place {
    let (before, all) = (-(len_q as i32), len_kv as i32);
    Place {
        batch,
        head,
        len_q,
        len_kv,
        length: clamped(&scoring.key_lengths, batch, 0i32.runtime(), all, all),
        first_keys: clamped(
            &scoring.first_keys,
            batch,
            0i32.runtime(),
            all,
            0i32.runtime(),
        ),
        offset: clamped(&scoring.query_offsets, batch, before, all, scoring.offset),
    }
}

/// Element `at` of a tensor, clamped to a range; `otherwise` if the tensor is absent.
#[cube]
pub(crate) fn clamped(
    numbers: &ComptimeOption<OwnedTensor<i32>>,
    at: usize,
    least: i32,
    most: i32,
    otherwise: i32,
) -> i32 {
    let mut number = otherwise;
    #[comptime]
    if let ComptimeOption::Some(numbers) = numbers {
        number = numbers[at].max(least).min(most);
    }
    number
}

/// The tiles of keys that some query of the tile at `query` may see, by position and lengths.
#[cube]
pub(crate) fn tiles_of_keys<M: Numeric>(
    scoring: &Scoring<M>,
    place: Place,
    query: usize,
    #[comptime] config: Config,
) -> Tiles {
    let (height, size) = comptime!((config.tile_queries(), config.tile_keys()));
    let first = place.offset + query as i32;
    let last = place.offset + (query + height).min(place.len_q) as i32 - 1;
    let mut start = (first - scoring.left).max(0i32);
    let mut end = (last + scoring.right + 1).max(0i32);
    if comptime!(scoring.first_keys.is_some()) {
        let first_keys = first_keys_before(scoring, place, last);
        if first_keys > 0i32 {
            start = 0i32.runtime();
            end = end.max(first_keys);
        }
    }
    let end = place.length.min(end);
    Tiles {
        start: start as usize / size,
        end: (end as usize).div_ceil(size),
    }
}

/// The tiles of queries that may see some key of the tile at `key`, by position and lengths.
#[cube]
pub(crate) fn tiles_of_queries<M: Numeric>(
    scoring: &Scoring<M>,
    place: Place,
    key: usize,
    #[comptime] config: Config,
) -> Tiles {
    let (height, size) = comptime!((config.tile_keys(), config.tile_queries()));
    let first = key as i32;
    let last = ((key + height) as i32).min(place.length) - 1;
    let mut start = (first - scoring.right - place.offset).max(0i32);
    let mut end = (place.len_q as i32).min((last + scoring.left - place.offset + 1).max(0i32));
    if comptime!(scoring.first_keys.is_some()) {
        let is_first = first < place.first_keys;
        let from = (first - scoring.right_of_first - place.offset).max(0i32);
        start = select(is_first, start.min(from), start);
        end = select(is_first, place.len_q as i32, end);
    }
    if first >= place.length {
        end = 0i32.runtime();
    }
    Tiles {
        start: start as usize / size,
        end: (end as usize).div_ceil(size),
    }
}

/// How many of the first keys position lets a query at `position` see.
#[cube]
fn first_keys_before<M: Numeric>(scoring: &Scoring<M>, place: Place, position: i32) -> i32 {
    place
        .first_keys
        .min((position + scoring.right_of_first + 1).max(0i32))
}

/// True only if position, lengths, segments, mask and table hide no pair in the tile at `query` and `key`. A bias may hide pairs.
#[cube]
pub(crate) fn tile_is_visible<M: Numeric>(
    scoring: &Scoring<M>,
    place: Place,
    query: usize,
    key: usize,
    #[comptime] config: Config,
) -> bool {
    let size = comptime!(config.tile_keys());
    let mut height = comptime!(config.tile_queries()).runtime();
    // Rows behind the last head may see anything: no result is theirs.
    if comptime!(config.heads > 1) {
        height = place.len_q;
    }
    let position = place.offset + query as i32;
    let mut visible = key as i32 >= position + height as i32 - 1 - scoring.left
        && (key + size) as i32 - 1 <= position + scoring.right;
    if comptime!(scoring.first_keys.is_some()) {
        visible = visible || (key + size) as i32 <= first_keys_before(scoring, place, position);
    }
    visible = visible && (key + size) as i32 <= place.length && query + height <= place.len_q;
    if comptime!(
        scoring.masked.is_some() || scoring.visible_blocks.is_some() || scoring.segments.is_some()
    ) {
        visible = visible && kind(scoring, place, query / height, key / size) == VISIBLE;
    }
    visible
}

/// The kind of a tile: [`VISIBLE`], [`HIDDEN`], or both bits, also if the kinds of tiles are unknown.
#[cube]
fn kind<M: Numeric>(scoring: &Scoring<M>, place: Place, tile_q: usize, tile_kv: usize) -> u32 {
    let mut kind = comptime!(VISIBLE | HIDDEN).runtime();
    #[comptime]
    if let ComptimeOption::Some(kinds) = &scoring.tile_kinds {
        kind = kinds[entry_of(kinds, place.batch, place.head, tile_q, tile_kv)];
    }
    kind
}

/// Whether a query of a tile may see a key of it, by segments, mask and table. With first keys, tiles between the first keys and the window are
/// hidden, too.
#[cube]
pub(crate) fn has_visible<M: Numeric>(
    scoring: &Scoring<M>,
    place: Place,
    tile_q: usize,
    tile_kv: usize,
    #[comptime] config: Config,
) -> bool {
    let mut visible = kind(scoring, place, tile_q, tile_kv) != HIDDEN;
    if comptime!(scoring.first_keys.is_some()) {
        let (height, size) = comptime!((config.tile_queries() as i32, config.tile_keys() as i32));
        let first = place.offset + tile_q as i32 * height;
        let key = tile_kv as i32 * size;
        let in_range = key + size > first - scoring.left && key < first + height + scoring.right;
        let last = first + height - 1;
        visible = visible && (in_range || key < first_keys_before(scoring, place, last));
    }
    visible
}

/// The first tile from `from` on that [`has_visible`] finds visible beside tile `other` of the other side; `end` or more without one.
#[cube]
pub(crate) fn next_visible<M: Numeric>(
    scoring: &Scoring<M>,
    place: Place,
    from: usize,
    end: usize,
    other: usize,
    #[comptime] config: Config,
) -> usize {
    let mut next = from;
    // Without kinds and first keys the loop would never run twice: CubeCL 0.11.3 would leave its value undefined in SPIR-V.
    if comptime!(scoring.tile_kinds.is_some() || scoring.first_keys.is_some()) {
        let keys_in_rows = comptime!(config.keys_in_rows);
        let mut found = false.runtime();
        while next < end && !found {
            let tile_q = select(keys_in_rows, next, other);
            let tile_kv = select(keys_in_rows, other, next);
            found = has_visible::<M>(scoring, place, tile_q, tile_kv, config);
            if !found {
                next += 1;
            }
        }
    }
    next
}

/// The head of row `row` of a unit, counted from the unit's first row.
#[cube]
pub(crate) fn head_of_row(place: Place, row: usize, #[comptime] config: Config) -> usize {
    let mut head = place.head;
    if comptime!(config.queries() < config.tile.rows) {
        head += row / comptime!(config.queries());
    }
    head
}

/// The query of row `row` of a unit in its head, both counted from the unit's first.
#[cube]
pub(crate) fn query_of_row(row: usize, #[comptime] config: Config) -> usize {
    let mut query = row;
    if comptime!(config.queries() < config.tile.rows) {
        query = row % comptime!(config.queries());
    }
    query
}

/// Whether a query of a head may not see a key.
#[cube]
pub(crate) fn is_hidden<M: Numeric>(
    scoring: &Scoring<M>,
    place: Place,
    head: usize,
    query: usize,
    key: usize,
) -> bool {
    let position = place.offset + query as i32;
    let mut by_position =
        (key as i32) < position - scoring.left || key as i32 > position + scoring.right;
    if comptime!(scoring.first_keys.is_some()) {
        by_position = by_position && key as i32 >= first_keys_before(scoring, place, position);
    }
    let hidden = key as i32 >= place.length || query >= place.len_q || by_position;
    // Queries and keys outside of the tensors must not be read.
    let query = query.min(place.len_q - 1);
    let key = key.min(place.len_kv - 1);
    is_masked::<M>(scoring, place, head, query, key) || hidden
}

/// Index of an entry of a tensor with four dimensions.
#[cube]
pub(crate) fn entry_of<T: Numeric>(
    tensor: &OwnedTensor<T>,
    batch: usize,
    head: usize,
    row: usize,
    column: usize,
) -> usize {
    batch * tensor.stride(0)
        + head * tensor.stride(1)
        + row * tensor.stride(2)
        + column * tensor.stride(3)
}

/// Whether segments, mask or table hide a key from a query of a head.
#[cube]
pub(crate) fn is_masked<M: Numeric>(
    scoring: &Scoring<M>,
    place: Place,
    head: usize,
    query: usize,
    key: usize,
) -> bool {
    let mut hidden = false.runtime();
    #[comptime]
    if let ComptimeOption::Some(segments) = &scoring.segments {
        let first = place.batch * (place.len_q + place.len_kv);
        hidden = hidden || segments[first + query] != segments[first + place.len_q + key];
    }
    #[comptime]
    if let ComptimeOption::Some(masked) = &scoring.masked {
        let at = entry_of(masked, place.batch, head, query, key);
        hidden = hidden || masked[at] != M::from_int(0i64);
    }
    #[comptime]
    if let ComptimeOption::Some(visible) = &scoring.visible_blocks {
        let row = query / scoring.block_queries as usize;
        let column = key / scoring.block_keys as usize;
        let at = entry_of(visible, place.batch, head, row, column);
        hidden = hidden || visible[at] == M::from_int(0i64);
    }
    hidden
}
