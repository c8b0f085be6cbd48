//! What a tile reads, forward and backward.

use core::ops::Range;

use pulp::Simd;

use crate::{
    attention::kernel::{
        scores::Scoring,
        seen::{Scores, Seen},
        tile::{Queries, Tile, blocks},
    },
    simd::{
        gemm::{Beta, Gemm},
        real::Real,
    },
    view::rows::{Block, Head},
};

/// `out[key][query] = sum_d rows[key][d] · panels[d][query]`, for the keys and queries of `out`.
///
/// The rows have `dim` numbers; `panels` has all panels of the tile.
#[inline(always)]
pub(crate) fn dot_products<S: Simd, R: Real>(
    simd: S,
    rows: Block<'_, R>,
    dim: usize,
    panels: &[R],
    out: &mut Scores<'_, R>,
) {
    let Seen { panel, keys, .. } = out.seen;
    Gemm {
        rows: keys.len(),
        depth: dim,
        lhs: rows.data,
        lhs_rs: rows.stride,
        lhs_cs: 1,
        rhs: &panels[panel.column * dim..][..panel.columns * dim],
        rhs_rs: panel.columns,
        out: out.numbers,
        out_rs: out.stride,
        beta: Beta::Zero,
    }
    .run(simd, panel.columns);
}

/// Takes the index of a query in the tile and its row of a result.
pub(crate) type WriteRow<'a, R> = &'a mut dyn FnMut(usize, &[R]);

/// The head of a tile, and the options.
#[derive(Clone, Copy)]
pub(crate) struct Operands<'a, R> {
    pub(crate) scoring: &'a Scoring<'a, R>,
    pub(crate) q: &'a dyn Head<R>,
    pub(crate) k: &'a dyn Head<R>,
    pub(crate) v: &'a dyn Head<R>,
    pub(crate) queries: Queries,
}

impl<R: Real> Operands<'_, R> {
    pub(crate) fn tile<S: Simd>(&self) -> Tile {
        Tile {
            queries: self.queries,
            lanes: R::lanes::<S>(),
        }
    }

    /// The blocks of at most `size` keys that a panel of the tile sees. Each comes with whether single keys of the block may be hidden,
    /// and with the panels that see the block, whose keys are cut at multiples of `rows`.
    pub(crate) fn seen_blocks(
        &self,
        tile: Tile,
        size: usize,
        rows: usize,
    ) -> impl Iterator<Item = (Range<usize>, bool, impl Iterator<Item = Seen>)> {
        let (scoring, queries) = (self.scoring, tile.queries);
        let keys = scoring.key_range(&queries);
        let heads = queries.head..queries.head + 1;
        let runs = scoring.runs(queries.batch_item, heads, queries.range(), keys);
        let blocks = runs.flat_map(move |run| blocks(run, size));
        blocks.filter_map(move |keys| {
            let block = keys.clone();
            let seen_by = move |index| scoring.seen_by(tile.panel(index), &block, rows);
            let mut panels = (0..tile.count()).filter_map(seen_by).peekable();
            panels.peek()?;
            let hides = scoring.may_hide_single_keys(&queries, &keys);
            Some((keys, hides, panels))
        })
    }
}
