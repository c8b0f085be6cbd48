//! From dot products to scores: softcap, biases, and what is hidden.

use cubecl::prelude::*;

use crate::{
    products::dot_products,
    scoring::{Config, Scoring, highest_finite, lowest_finite},
    tile::{Four, Side, Tile, Unit, zeros},
    visible::{
        Pairs, Place, entry_of, head_of_row, is_hidden, pairs, query_of_row, tile_is_visible,
    },
};

/// The bits of infinity, which are less than those of any NaN.
const INFINITE: u32 = 0x7f80_0000;

/// The hyperbolic tangent with a small relative error on every driver.
#[cube]
fn accurate_tanh(x: f32) -> f32 {
    // Beyond ±15 tanh is ±1 in f32, and some drivers overflow.
    let high = x > f32::new(15.0);
    let low = x < f32::new(-15.0);
    let bounded = select(high, f32::new(15.0), select(low, f32::new(-15.0), x));
    // Near 0, the error of a driver may be relative to 1 instead of x. The error of Taylor's series is 5e-8 x.
    let square = bounded * bounded;
    let of_square = f32::new(2.0 / 15.0) * square - f32::new(1.0 / 3.0);
    let series = bounded * (f32::new(1.0) + square * of_square);
    select(square < f32::new(0.01), series, bounded.tanh())
}

/// The derivative of the hyperbolic tangent, `1 − tanh²(x)`, as `4e / (1 + e)²` with `e = exp(−2 · |x|)`: the difference would
/// cancel where the tangent is near 1.
#[cube]
fn dtanh(x: f32) -> f32 {
    let e = (f32::new(-2.0) * x.abs()).exp();
    let sum = f32::new(1.0) + e;
    f32::new(4.0) * e / (sum * sum)
}

/// A unit's part of a tile of scores.
#[derive(CubeType)]
pub(crate) struct Scored {
    pub(crate) pairs: Pairs,
    /// [`lowest_finite`] where hidden.
    pub(crate) scores: Array<Four>,
    /// The derivative of the softcap, if there is one.
    pub(crate) dsoftcap: Array<Four>,
    /// Which scores are hidden, as [`score`] returns it.
    pub(crate) hidden: Array<u32>,
    /// Whether any score is hidden.
    pub(crate) any_hidden: bool,
    /// Whether every column of the tile is known to be seen by some row.
    pub(crate) all_seen: bool,
}

/// A unit's part of the scores of the rows of `left` with those of `right`, which are the columns of the tile.
#[cube]
pub(crate) fn scored<F: Float, M: Numeric, N: Size>(
    left: Side<'_, F, N>,
    right: Side<'_, F, N>,
    scoring: &Scoring<M>,
    place: Place,
    unit: &mut Unit,
    #[comptime] config: Config,
) -> Scored {
    let mut products = zeros(comptime!(config.tile.vectors_per_unit()));
    dot_products(left, right, &mut products, unit);
    scored_products::<M>(
        products,
        left.first,
        right.first,
        scoring,
        place,
        unit,
        config,
    )
}

/// A unit's part of the scores from its dot products, in the tile that begins at `row` and `column`.
#[cube]
pub(crate) fn scored_products<M: Numeric>(
    products: Array<Four>,
    row: usize,
    column: usize,
    scoring: &Scoring<M>,
    place: Place,
    unit: &mut Unit,
    #[comptime] config: Config,
) -> Scored {
    let keys_in_rows = comptime!(config.keys_in_rows);
    let pairs = pairs(place, unit, row, column, config);
    let query = select(keys_in_rows, column, row);
    let key = select(keys_in_rows, row, column);
    let visible = tile_is_visible::<M>(scoring, place, query, key, config);
    // A bias may hide what position and lengths leave visible.
    let mut all_seen = visible;
    if comptime!(scoring.bias.is_some() || scoring.distance_bias.is_some()) {
        all_seen = false.runtime();
    }
    let mut scores = products;
    let mut dsoftcap = Array::<Four>::new(comptime!(config.tile.vectors_per_unit()));
    let hidden = score::<M>(&mut scores, &mut dsoftcap, scoring, pairs, visible);
    let any_hidden = any(&hidden, config);
    Scored {
        pairs,
        scores,
        dsoftcap,
        hidden,
        any_hidden,
        all_seen,
    }
}

/// Turns the dot products of a unit into scores, [`lowest_finite`] where hidden, and returns the flags of those that are hidden.
#[cube]
pub(crate) fn score<M: Numeric>(
    scores: &mut Array<Four>,
    dsoftcap: &mut Array<Four>,
    scoring: &Scoring<M>,
    pairs: Pairs,
    visible: bool,
) -> Array<u32> {
    let config = comptime!(pairs.config);
    let keys_in_rows = comptime!(config.keys_in_rows);
    let (place, row, column) = (pairs.place, pairs.row, pairs.column);
    let tile = comptime!(config.tile);
    let rows = comptime!(tile.rows);
    let groups = comptime!(tile.groups());
    let mut bits = no_flags(tile);
    if comptime!(config.softcap) {
        #[unroll]
        for i in 0..comptime!(tile.vectors_per_unit()) {
            let mut capped = scores[i];
            let mut derivative = Four::new(0.0f32);
            #[unroll]
            for j in 0..4usize {
                let number = capped.extract(j);
                let ratio = number / scoring.softcap;
                let tanh = accurate_tanh(ratio);
                // A score far below the softcap stays as it is, without the rounding of the ratio.
                let is_small = ratio.abs() < f32::new(1e-4);
                capped.insert(j, select(is_small, number, scoring.softcap * tanh));
                derivative.insert(j, dtanh(ratio));
            }
            scores[i] = capped;
            dsoftcap[i] = derivative;
        }
    }
    if comptime!(scoring.bias.is_some() || scoring.distance_bias.is_some()) {
        #[unroll]
        for index in 0..comptime!(tile.vectors_per_unit()) {
            let (i, group) = comptime!((index / groups, index % groups));
            let head = head_of_row(place, i, config);
            let row_query = row + query_of_row(i, config);
            let mut sum = scores[index];
            #[unroll]
            for j in 0..4usize {
                let column = column + comptime!(tile.skip(group) + j);
                let query = select(keys_in_rows, column, row_query).min(place.len_q - 1);
                let key = select(keys_in_rows, row + i, column).min(place.len_kv - 1);
                let mut hides = false.runtime();
                #[comptime]
                if let ComptimeOption::Some(bias) = &scoring.bias {
                    let number = bias[entry_of(bias, place.batch, head, query, key)];
                    hides = number < lowest_finite();
                    sum.insert(j, sum.extract(j) + number);
                }
                #[comptime]
                if let ComptimeOption::Some(bias) = &scoring.distance_bias {
                    let mut zero = place.len_kv as i32 - 1;
                    if comptime!(scoring.query_offsets.is_some()) {
                        zero = place.offset + (place.len_q + place.len_kv) as i32 - 1;
                    }
                    let distance = (query as i32 - key as i32 + zero) as usize;
                    let number = bias[head * bias.shape(1) + distance];
                    hides = hides || number < lowest_finite();
                    sum.insert(j, sum.extract(j) + number);
                }
                // A bias of −∞ hides even a NaN score.
                if hides {
                    let (word, first) = comptime!(tile.flags(i, group));
                    bits[word] |= comptime!(1u32 << (first + j) as u32);
                }
            }
            scores[index] = sum;
        }
    }
    if !visible {
        // Not unrolled: the loop would be most of the program and of its compile time.
        for pair in 0..comptime!(rows * 4) {
            let (i, column) = (pair / 4, column + pair % 4);
            let head = head_of_row(place, i, config);
            let row_query = row + query_of_row(i, config);
            #[unroll]
            for group in 0..groups {
                let column = column + comptime!(tile.skip(group));
                let query = select(keys_in_rows, column, row_query);
                let key = select(keys_in_rows, row + i, column);
                if is_hidden::<M>(scoring, place, head, query, key) {
                    let (word, first) = comptime!(tile.flags(0, group));
                    bits[word] |= 1u32 << (first + pair) as u32;
                }
            }
        }
    }
    // One test for all scores, because almost none is hidden or infinite: whether their magnitudes add up to a finite number. If only the sum overflows,
    // the branch changes nothing. Bits are compared, because drivers order NaN differently.
    let mut sum = scores[0usize].abs();
    #[unroll]
    for index in 1..comptime!(tile.vectors_per_unit()) {
        sum += scores[index].abs();
    }
    let are_finite = u32::reinterpret(sum_of(sum)) < INFINITE;
    if !are_finite || any(&bits, config) {
        #[unroll]
        for index in 0..comptime!(tile.vectors_per_unit()) {
            let (i, group) = comptime!((index / groups, index % groups));
            let (word, first) = comptime!(tile.flags(i, group));
            let mut checked = scores[index];
            #[unroll]
            for j in 0..4usize {
                let bit = comptime!(1u32 << (first + j) as u32);
                let number = checked.extract(j);
                // A score of −∞ is hidden, +∞ becomes finite, NaN stays.
                if number < lowest_finite() {
                    bits[word] |= bit;
                }
                let number = select(number > highest_finite(), highest_finite(), number);
                let hidden = bits[word] & bit != 0;
                checked.insert(j, select(hidden, lowest_finite(), number));
            }
            scores[index] = checked;
        }
    }
    bits
}

/// A flag of each pair of a unit, none of them set; [`Tile::flags`] says where they are.
#[cube]
pub(crate) fn no_flags(#[comptime] tile: Tile) -> Array<u32> {
    let words = comptime!(tile.words_of_flags());
    let mut bits = Array::<u32>::new(words);
    #[unroll]
    for word in 0..words {
        bits[word] = 0u32;
    }
    bits
}

#[cube]
fn any(bits: &Array<u32>, #[comptime] config: Config) -> bool {
    let mut all = bits[0usize];
    #[unroll]
    for word in 1..comptime!(config.tile.words_of_flags()) {
        all |= bits[word];
    }
    all != 0
}

/// Marks the columns of the tile that a row of this unit sees. Needs a barrier before, and one after.
#[cube]
pub(crate) fn mark_seen(bits: &Array<u32>, unit: &mut Unit) {
    let tile = comptime!(unit.tile);
    let all = comptime!((0..tile.rows).fold(0u32, |all, row| all | 1 << (row * 4)));
    #[unroll]
    for group in 0..comptime!(tile.groups()) {
        let (word, first) = comptime!(tile.flags(0, group));
        #[unroll]
        for j in 0..4usize {
            let column = comptime!(all << (first + j) as u32);
            if bits[word] & column != column {
                // All units that write write 1.
                let at = unit.x * 4 + comptime!(tile.skip(group) + j);
                unit.seen[at] = 1u32;
            }
        }
    }
}

#[cube]
pub(crate) fn sum_of(four: Four) -> f32 {
    (four.extract(0usize) + four.extract(1usize)) + (four.extract(2usize) + four.extract(3usize))
}

#[cube]
pub(crate) fn largest_of(four: Four) -> f32 {
    let pair = four.extract(0usize).max(four.extract(1usize));
    pair.max(four.extract(2usize).max(four.extract(3usize)))
}

/// Sets the numbers of hidden pairs to zero; `hidden` and `any_hidden` are fields of [`Scored`].
#[cube]
pub(crate) fn zero_hidden(
    numbers: &mut Array<Four>,
    hidden: &Array<u32>,
    any_hidden: bool,
    #[comptime] config: Config,
) {
    let groups = comptime!(config.tile.groups());
    if any_hidden {
        #[unroll]
        for index in 0..comptime!(config.tile.vectors_per_unit()) {
            let (word, first) = comptime!(config.tile.flags(index / groups, index % groups));
            numbers[index] = zero_where(numbers[index], hidden[word], first);
        }
    }
}

/// Four numbers, with zeros where the bits from `first` on are set.
#[cube]
pub(crate) fn zero_where(four: Four, bits: u32, #[comptime] first: usize) -> Four {
    let mut kept = Four::new(0.0f32);
    #[unroll]
    for j in 0..4usize {
        let bit = comptime!(1u32 << (first + j) as u32);
        kept.insert(j, select(bits & bit != 0, f32::new(0.0), four.extract(j)));
    }
    kept
}
