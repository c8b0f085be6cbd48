//! Output and logsumexp.
//!
//! Sources: Dao, "FlashAttention-2" (arXiv:2307.08691), algorithm 1; Zadouri et al., "FlashAttention-4" (arXiv:2603.05451), which
//! rescales sums only if a maximum grows by more than a bound.

use cubecl::{ir::ElemType, prelude::*};

use super::{
    fragments::{
        add_weighted_rows, dot_products, own_rows, part_of_sums, reduce_row, unit_of_plane,
        zero_sums,
    },
    operands::{clear_unseen, load_operand, none_ahead, operands},
    rescale::rescale,
    shape::Matrix,
    tiles::{fetch_tile, put_tile, source},
};
use crate::{
    dropout::{dropped, keep_scale, zero_dropped},
    forward::{ended, store_statistics},
    score::{largest_of, mark_seen, scored_products, sum_of, zero_hidden},
    scoring::{Config, Scoring, lowest_finite},
    share::{batch_of_results, shared},
    site::site,
    store::store_rows,
    tile::{Four, side},
    visible::{pairs, tiles_of_keys},
};

/// How far a score may exceed the base of its row before sums are rescaled: a weight of 2⁸.
const MOST_GROWTH: f32 = 8.0 * core::f32::consts::LN_2;

/// The number subtracted from a row's scores before `exp`. Unless operands are f16, it is `MOST_GROWTH` above the base: weights are at
/// most 1, and no sum exceeds the sum of the values' magnitudes. With f16 it is the base: with weights of up to 256, fewer small weights underflow.
#[cube]
fn above(base: f32, #[comptime] matrix: Matrix) -> f32 {
    let mut above = base;
    if comptime!(!matrix.scaled) {
        above = base + f32::new(MOST_GROWTH);
    }
    above
}

#[cfg_attr(test, cube(launch_unchecked, create_dummy_kernel))]
#[cfg_attr(not(test), cube(launch_unchecked))]
pub(crate) fn forward<F: Float, M: Numeric, O: Float, T: Float, N: Size>(
    query: &Tensor<Vector<F, N>>,
    key: &Tensor<Vector<F, N>>,
    value: &Tensor<Vector<F, N>>,
    sinks: &ComptimeOption<OwnedTensor<f32>>,
    scoring: &Scoring<M>,
    output: &mut Tensor<O>,
    logsumexp: &mut Tensor<f32>,
    minus_infinity: f32,
    #[comptime] config: Config,
    #[define(F, M, O, T)] _types: [ElemType; 4],
) {
    let tile = comptime!(config.tile);
    let matrix = comptime!(config.matrix.unwrap());
    let groups = comptime!(tile.groups());
    let (dim_qk, dim_v) = comptime!((matrix.dim_qk, matrix.dim_v));
    let site = site::<F, M, N>(query, key, scoring, config);
    let (place, first, batch) = (site.place, site.first, site.place.batch);
    let one = f32::new(1.0);
    let mut unit = unit_of_plane(tile, matrix);
    let mut operands = operands::<T>(matrix);
    let heads = comptime!(config.heads);
    let queries = own_rows::<F, T, N>(
        site.queries,
        &mut unit,
        &mut operands,
        heads,
        dim_qk,
        matrix,
    );
    let mut sums = zero_sums(dim_v, matrix);
    let mut base = lowest_finite();
    let mut total = f32::new(0.0);

    let tiles = tiles_of_keys::<M>(scoring, place, first, config);
    let tiles = shared(tiles, site.share, 0usize, 1usize, config);
    let (end, own) = (tiles.end, first / tile.height);
    let mut ahead = none_ahead::<F>(matrix);
    let source = source::<F, N>(key, value, batch, site.head_kv);
    let from = tiles.start;
    let mut number =
        fetch_tile::<F, M, N>(source, scoring, place, from, end, own, &mut ahead, config);
    while number < end {
        let start = number * tile.size;
        put_tile::<F, T, N>(source, number, &ahead, &mut unit, &mut operands, config);
        let from = number + 1;
        number = fetch_tile::<F, M, N>(source, scoring, place, from, end, own, &mut ahead, config);
        let products = dot_products::<T>(
            &queries,
            scoring.scale,
            &mut unit,
            &mut operands,
            0usize,
            dim_qk,
            matrix,
        );
        let mut scored =
            scored_products::<M>(products, first, start, scoring, place, &mut unit, config);
        if !scored.all_seen {
            mark_seen(&scored.hidden, &mut unit);
        }

        let mut of_row = scored.scores[0usize];
        #[unroll]
        for group in 1..groups {
            of_row = of_row.max(scored.scores[group]);
        }
        let top = reduce_row(largest_of(of_row), true, tile);
        let mut factor = one;
        let grows = top > base + MOST_GROWTH;
        if grows {
            factor = (base - top).exp();
            base = top;
        }
        // Sums are 0 while the total is 0, and need no rescaling.
        let wanted = grows && total > f32::new(0.0);
        total *= factor;
        rescale(&mut sums, factor, wanted, &mut unit, dim_v, matrix);
        #[unroll]
        for group in 0..groups {
            scored.scores[group] = (scored.scores[group] - Four::new(above(base, matrix))).exp();
        }
        zero_hidden(
            &mut scored.scores,
            &scored.hidden,
            scored.any_hidden,
            config,
        );
        let mut sum = scored.scores[0usize];
        #[unroll]
        for group in 1..groups {
            sum += scored.scores[group];
        }
        total += sum_of(sum);
        let dropped = dropped::<M>(scoring, scored.pairs);
        zero_dropped(&mut scored.scores, &dropped, config);

        if comptime!(matrix.operands > 1) {
            if !scored.all_seen {
                sync_cube();
                clear_unseen(&mut unit, &mut operands, 1usize, dim_v, matrix);
                sync_cube();
            }
        } else {
            sync_cube();
            let values = side::<F, N>(value, batch, site.head_kv, start, one);
            load_operand::<F, T, N>(
                values,
                scored.all_seen,
                &mut unit,
                &mut operands,
                matrix.operand(1),
                dim_v,
                matrix,
            );
            sync_cube();
        }
        add_weighted_rows::<T>(
            &scored.scores,
            &sums,
            &mut unit,
            &mut operands,
            1usize,
            dim_v,
            matrix,
        );
    }

    let total = reduce_row(total, false, tile);
    let mut own = pairs(place, &mut unit, first, 0usize.runtime(), config);
    own.place.batch = batch_of_results(site.share, batch, query.shape(0), config);
    let result = ended(
        above(base, matrix),
        total,
        sinks,
        own.place.head,
        minus_infinity,
        keep_scale::<M>(scoring, config),
        config,
    );
    #[unroll]
    for part in 0..comptime!(matrix.parts(dim_v)) {
        let mut numbers = part_of_sums(&mut sums, &mut unit, part, dim_v, matrix);
        if result.empty {
            #[unroll]
            for group in 0..groups {
                numbers[group] = Four::new(0.0f32);
            }
        }
        store_rows::<O>(&numbers, result.factor, output, own, part, 1usize);
    }
    if unit.x == 0 && own.row < place.len_q {
        let of_heads = (own.place.batch * query.shape(1) + own.place.head) * place.len_q;
        store_statistics(logsumexp, of_heads + own.row, result, total, config);
    }
}
