//! Which weights are dropped: [`burn_attn_kernels_cpu::AttentionDropout`] on the device, with the same bits.

use cubecl::prelude::*;

use crate::{
    score::{no_flags, zero_where},
    scoring::{Config, Scoring},
    tile::Four,
    visible::{Pairs, Place, head_of_row, query_of_row},
};

/// The hash of a key in [`burn_attn_kernels_cpu::AttentionDropout`]: `word` is the key xor `a`, `middle` is `b`. With 0 as `middle`, `mix`.
#[cube]
fn hash(word: u32, middle: u32) -> u32 {
    let mut x = word;
    x ^= x >> 17;
    x = x * 0xed5a_d4bb + middle;
    x ^= x >> 11;
    x *= 0xac4c_1b51;
    x ^= x >> 15;
    x *= 0x3184_8bab;
    x ^ (x >> 14)
}

/// The 64-bit state of a row.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct RowState {
    a: u32,
    b: u32,
}

#[cube]
fn next(state: RowState, word: u32) -> RowState {
    let a = hash(state.a ^ word, 0u32);
    RowState {
        a,
        b: hash(state.b + a, 0u32),
    }
}

/// The state of all rows of a head before their queries are hashed.
#[cube]
fn head_state<M: Numeric>(scoring: &Scoring<M>, batch: usize, head: usize) -> RowState {
    let seeded = RowState {
        a: scoring.seeded_a,
        b: scoring.seeded_b,
    };
    next(next(seeded, batch as u32), head as u32)
}

/// The flags of a unit's weights that are dropped, where rows are queries. Without dropout, nothing is hashed.
#[cube]
pub(crate) fn dropped<M: Numeric>(scoring: &Scoring<M>, pairs: Pairs) -> Array<u32> {
    let config = comptime!(pairs.config);
    let mut bits = no_flags(comptime!(config.tile));
    if comptime!(config.dropout) {
        hash_pairs::<M>(&mut bits, scoring, pairs);
    }
    bits
}

/// Fills in the bits of [`dropped`].
#[cube]
fn hash_pairs<M: Numeric>(bits: &mut Array<u32>, scoring: &Scoring<M>, pairs: Pairs) {
    let config = comptime!(pairs.config);
    let (place, row, column) = (pairs.place, pairs.row, pairs.column);
    let tile = comptime!(config.tile);
    let groups = comptime!(tile.groups());
    // Head and query are hashed at most once per row, not once per pair.
    let one_head = comptime!(config.queries() >= tile.rows);
    let (mut a, mut b) = (0u32.runtime(), 0u32.runtime());
    if comptime!(one_head) {
        let head = head_state::<M>(scoring, place.batch, place.head);
        (a, b) = (head.a, head.b);
    }
    for q in 0..tile.rows {
        if comptime!(!one_head) {
            let head = head_state::<M>(scoring, place.batch, head_of_row(place, q, config));
            (a, b) = (head.a, head.b);
        }
        let state = next(RowState { a, b }, (row + query_of_row(q, config)) as u32);
        #[unroll]
        for group in 0..groups {
            let key = column + comptime!(tile.skip(group));
            let (word, bit) = comptime!(tile.flags(0, group));
            for k in 0..4usize {
                if is_dropped::<M>(state, key + k, scoring) {
                    bits[word] |= 1u32 << (bit + q * 4 + k) as u32;
                }
            }
        }
    }
}

#[cube]
fn is_dropped<M: Numeric>(row: RowState, key: usize, scoring: &Scoring<M>) -> bool {
    hash(key as u32 ^ row.a, row.b) >> 1 < scoring.threshold
}

/// The states of the queries that are a tile's columns, two numbers each, for all units of a cube.
#[cube]
pub(crate) fn column_states(#[comptime] config: Config) -> Shared<[u32]> {
    Shared::<[u32]>::new_slice(comptime!(if config.dropout {
        2 * config.tile.size
    } else {
        1
    }))
}

/// Hashes the queries from `first` on into [`column_states`]. Needs a barrier before, and one after.
#[cube]
pub(crate) fn load_column_states<M: Numeric>(
    states: &mut Shared<[u32]>,
    scoring: &Scoring<M>,
    place: Place,
    first: usize,
    #[comptime] config: Config,
) {
    if comptime!(config.dropout) {
        let at = UNIT_POS as usize;
        // A cube has at least as many units as columns.
        if at < comptime!(config.tile.size) {
            let head = head_state::<M>(scoring, place.batch, place.head);
            let state = next(head, (first + at) as u32);
            states[at * 2] = state.a;
            states[at * 2 + 1] = state.b;
        }
    }
}

/// [`dropped`] where rows are keys and columns are queries from `first` on, which [`load_column_states`] has hashed.
#[cube]
pub(crate) fn dropped_of_columns<M: Numeric>(
    states: &Shared<[u32]>,
    first: usize,
    scoring: &Scoring<M>,
    pairs: Pairs,
) -> Array<u32> {
    let config = comptime!(pairs.config);
    let tile = comptime!(config.tile);
    let mut bits = no_flags(tile);
    if comptime!(config.dropout) {
        #[unroll]
        for group in 0..comptime!(tile.groups()) {
            let (word, bit) = comptime!(tile.flags(0, group));
            let own = pairs.column - first + comptime!(tile.skip(group));
            for q in 0..4usize {
                let at = (own + q) * 2;
                let (a, b) = (states[at], states[at + 1]);
                for k in 0..tile.rows {
                    if is_dropped::<M>(RowState { a, b }, pairs.row + k, scoring) {
                        bits[word] |= 1u32 << (bit + k * 4 + q) as u32;
                    }
                }
            }
        }
    }
    bits
}

/// Turns gradients of weights after dropout into those of the weights before: 0 where a weight is dropped, and scaled elsewhere.
#[cube]
pub(crate) fn drop_weights<M: Numeric>(
    gradients: &mut Array<Four>,
    dropped: &Array<u32>,
    scoring: &Scoring<M>,
    #[comptime] config: Config,
) {
    if comptime!(config.dropout) {
        #[unroll]
        for index in 0..comptime!(config.tile.vectors_per_unit()) {
            gradients[index] *= Four::new(scoring.keep_scale);
        }
        zero_dropped(gradients, dropped, config);
    }
}

/// Sets dropped weights to zero. Sums of the others are multiplied by [`keep_scale`] at the end, and overflow later than sums of scaled weights.
#[cube]
pub(crate) fn zero_dropped(
    weights: &mut Array<Four>,
    dropped: &Array<u32>,
    #[comptime] config: Config,
) {
    if comptime!(config.dropout) {
        let groups = comptime!(config.tile.groups());
        #[unroll]
        for index in 0..comptime!(config.tile.vectors_per_unit()) {
            let (word, bit) = comptime!(config.tile.flags(index / groups, index % groups));
            weights[index] = zero_where(weights[index], dropped[word], bit);
        }
    }
}

/// The factor on kept weights; 1 without dropout.
#[cube]
pub(crate) fn keep_scale<M: Numeric>(scoring: &Scoring<M>, #[comptime] config: Config) -> f32 {
    let mut scale = f32::new(1.0);
    if comptime!(config.dropout) {
        scale = scoring.keep_scale;
    }
    scale
}
