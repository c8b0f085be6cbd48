//! What a tile reads, forward and backward.

use core::ops::Range;

use pulp::Simd;

use crate::{
    attention::kernel::{
        scores::Scoring,
        tile::{Panel, Tile, blocks},
        visibility::Seen,
    },
    simd::{
        gemm::{Beta, Gemm},
        real::Real,
    },
    view::rows::{Block, Head},
};

/// `out[key][query] = sum_d rows[key][d] · panels[d][query]`, for some rows and the queries of a panel.
///
/// `sizes` are the number of rows and of their numbers; `panels` has all panels of the tile.
#[inline(always)]
pub(crate) fn dot_products<S: Simd, R: Real>(
    simd: S,
    panel: &Panel,
    rows: Block<'_, R>,
    sizes: [usize; 2],
    panels: &[R],
    out: &mut [R],
    out_rs: usize,
) {
    let [count, dim] = sizes;
    Gemm {
        rows: count,
        depth: dim,
        lhs: rows.data,
        lhs_rs: rows.stride,
        lhs_cs: 1,
        rhs: &panels[panel.column * dim..][..panel.columns * dim],
        rhs_rs: panel.columns,
        out,
        out_rs,
        beta: Beta::Zero,
    }
    .run(simd, panel.columns);
}

/// The head of a tile, and the options.
pub(crate) struct Operands<'a, R> {
    pub(crate) scoring: Scoring<'a, R>,
    pub(crate) scale: f64,
    /// −∞ for none.
    pub(crate) sink: f64,
    pub(crate) q: &'a dyn Head<R>,
    pub(crate) k: &'a dyn Head<R>,
    pub(crate) v: &'a dyn Head<R>,
    pub(crate) batch_item: usize,
    /// Query head.
    pub(crate) head: usize,
    /// The first query of the tile.
    pub(crate) query: usize,
}

impl<R: Real> Operands<'_, R> {
    pub(crate) fn tile<S: Simd>(&self, queries: usize) -> Tile {
        Tile {
            batch_item: self.batch_item,
            head: self.head,
            query: self.query,
            queries,
            lanes: R::lanes::<S>(),
        }
    }

    /// The blocks of at most `size` keys that a panel of the tile sees, whether single keys of a block may be hidden, and the panels that
    /// see it, whose keys are cut at multiples of `rows`.
    pub(crate) fn seen_blocks(
        &self,
        tile: Tile,
        size: usize,
        rows: usize,
    ) -> impl Iterator<Item = (Range<usize>, bool, impl Iterator<Item = Seen>)> {
        let (scoring, queries) = (self.scoring, tile.query..tile.query + tile.queries);
        let visible = scoring.visible;
        let keys = visible.key_range(tile.batch_item, queries.clone());
        let heads = tile.head..tile.head + 1;
        let runs = visible.runs(tile.batch_item, heads, queries.clone(), keys);
        let blocks = runs.flat_map(move |run| blocks(run, size));
        blocks.filter_map(move |keys| {
            let block = keys.clone();
            let panels = (0..tile.count()).map(move |index| tile.panel(index));
            let mut panels = panels
                .filter_map(move |panel| visible.seen_by(panel, &block, rows))
                .peekable();
            panels.peek()?;
            let hides = scoring.may_hide_single_keys([tile.batch_item, tile.head], &queries, &keys);
            Some((keys, hides, panels))
        })
    }
}
