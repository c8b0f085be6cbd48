//! The forward pass of one tile of queries.

use core::{f64::consts::LOG2_E, ops::Range};

use pulp::{Simd, WithSimd};

use crate::{
    Problem,
    attention::kernel::{
        scores::{Scores, Scoring},
        screened::{Screened, all_finite},
        softmax::{finish, online_softmax},
        tile::{FORWARD_KEYS, Panel, QUERIES, Tile, WIDEST_PANEL, blocks, padded, prescale},
        transpose::rows_to_panels,
        visibility::Visibility,
    },
    simd::{
        gemm::{Beta, Gemm},
        real::Real,
    },
    threads::scratch::{sum_of_pieces, take},
    view::rows::{Block, Head},
};

/// Length of the scratch buffer of a tile.
pub(crate) fn tile_scratch(problem: &Problem) -> usize {
    let Problem {
        len_q,
        len_kv,
        dim_qk,
        dim_v,
        ..
    } = *problem;
    // A tile's columns fill its last vector.
    let queries = padded(len_q.min(QUERIES));
    let keys = len_kv.min(FORWARD_KEYS);
    sum_of_pieces([
        queries * padded(dim_qk),
        queries * dim_qk,
        queries * padded(dim_v),
        queries,
        queries,
        queries,
        keys * WIDEST_PANEL,
        keys * WIDEST_PANEL,
        keys * padded(dim_qk),
        keys * padded(dim_v),
        keys * padded(dim_v),
    ])
}

/// One tile of queries of one head.
pub struct TileForward<'a, R> {
    pub(crate) scoring: Scoring<'a, R>,
    pub(crate) scale: f64,
    pub(crate) sink: f64,
    pub(crate) q: &'a dyn Head<R>,
    pub(crate) k: &'a dyn Head<R>,
    pub(crate) v: &'a dyn Head<R>,
    pub(crate) batch_item: usize,
    pub(crate) head: usize,
    pub(crate) query: usize,
    pub(crate) logsumexp: &'a mut [R],
    /// Takes the index of a query in the tile and its row of the output.
    pub(crate) output: &'a mut dyn FnMut(usize, &[R]),
    pub(crate) scratch: &'a mut [R],
}

/// What a panel carries from one block of keys to the next.
struct Running<'a, R> {
    /// The queries, `[dim_qk, columns]`.
    query: &'a [R],
    /// The sums of the values so far, `[queries, padded(dim_v)]`.
    output: &'a mut [R],
    /// The largest score so far.
    maximum: &'a mut [R],
    /// The sum of the weights so far, relative to the maximum.
    sum: &'a mut [R],
    /// The factor of the sums so far when the maximum grows.
    rescale: &'a mut [R],
}

impl<R: Real> WithSimd for TileForward<'_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Problem {
            dim_qk,
            dim_v,
            len_kv,
            ..
        } = self.scoring.visible.problem;
        let tile = Tile {
            batch_item: self.batch_item,
            head: self.head,
            query: self.query,
            queries: self.logsumexp.len(),
            lanes: R::lanes::<S>(),
        };
        let columns = tile.columns();
        let block_keys = len_kv.min(FORWARD_KEYS);
        let mut scratch = self.scratch;
        let (padded_qk, padded_v) = (padded(dim_qk), padded(dim_v));
        let rows = take(&mut scratch, tile.queries * padded_qk);
        let query = take(&mut scratch, columns * dim_qk);
        let output = take(&mut scratch, tile.queries * padded_v);
        let maximum = take(&mut scratch, columns);
        let sum = take(&mut scratch, columns);
        let rescale = take(&mut scratch, columns);
        let scores = take(&mut scratch, block_keys * 2 * tile.lanes);
        let kept = take(&mut scratch, block_keys * 2 * tile.lanes);
        let key_buffer = take(&mut scratch, block_keys * padded_qk);
        let value_buffer = take(&mut scratch, block_keys * padded_v);
        let screened_buffer = take(&mut scratch, block_keys * padded_v);

        for (index, row) in rows.chunks_exact_mut(padded_qk).enumerate() {
            self.q.row(tile.query + index, &mut row[..dim_qk]);
        }
        let factor = R::from_f64(prescale(self.scale, rows) * LOG2_E);
        rows_to_panels(&tile, dim_qk, padded_qk, rows, factor, query);
        output.fill(R::default());
        maximum.fill(R::NEG_INFINITY);
        sum.fill(R::default());

        let queries = tile.query..tile.query + tile.queries;
        let keys = self
            .scoring
            .visible
            .key_range(tile.batch_item, queries.clone());
        let heads = tile.head..tile.head + 1;
        let runs = self
            .scoring
            .visible
            .runs(tile.batch_item, heads, queries.clone(), keys);
        for keys in runs.flat_map(|run| blocks(run, FORWARD_KEYS)) {
            let mut panels = (0..tile.count())
                .filter_map(|index| {
                    let panel = tile.panel(index);
                    let seen = self.scoring.visible.seen_by(&panel, &keys, 1)?;
                    Some((panel, seen))
                })
                .peekable();
            // Keys that no panel sees are not even copied.
            if panels.peek().is_none() {
                continue;
            }
            let key = self.k.block(keys.clone(), dim_qk, dim_qk, key_buffer);
            let width = dim_v.next_multiple_of(tile.lanes);
            let value = self.v.block(keys.clone(), dim_v, width, value_buffer);
            let head = [tile.batch_item, tile.head];
            let search = (self.scoring).may_hide_single_keys(head, &queries, &keys);
            let sizes = [keys.len(), dim_v, width];
            let mut value = Screened::new(simd, value, sizes, screened_buffer, search);
            for (panel, (part, visibility)) in panels {
                let all = panel.column..panel.column + panel.columns;
                let running = Running {
                    query: &query[all.start * dim_qk..all.end * dim_qk],
                    output: &mut output[all.start * padded_v..],
                    maximum: &mut maximum[all.clone()],
                    sum: &mut sum[all.clone()],
                    rescale: &mut rescale[all],
                };
                let rows = part.start - keys.start..part.end - keys.start;
                let key = key.after(rows.start);
                let value = (&mut value, rows);
                let scoring = &self.scoring;
                if panel.columns == tile.lanes {
                    step::<S, R, 1>(
                        simd, scoring, &panel, part, visibility, key, value, running, scores, kept,
                    );
                } else {
                    step::<S, R, 2>(
                        simd, scoring, &panel, part, visibility, key, value, running, scores, kept,
                    );
                }
            }
        }

        let kept_scale = self
            .scoring
            .dropout
            .map_or(1.0, |dropout| dropout.kept_scale());
        for (query, logsumexp) in self.logsumexp.iter_mut().enumerate() {
            let (of_row, factor) = finish(maximum[query].to_f64(), sum[query].to_f64(), self.sink);
            *logsumexp = R::from_f64(of_row);
            rescale[query] = R::from_f64(kept_scale * factor);
        }
        for (query, row) in output.chunks_exact_mut(padded_v).enumerate() {
            let factor = R::splat(simd, rescale[query]);
            for x in R::vectors_mut::<S>(row) {
                *x = R::times(simd, *x, factor);
            }
            let row = &mut row[..dim_v];
            let at = [tile.batch_item, tile.head, tile.query + query];
            let finite = || all_finite(simd, [&*row].into_iter(), R::from_f64(1.0));
            // Weights of zero times values that other rows see are NaN if the values are.
            if (self.scoring).fully_masked(at, self.sink, self.logsumexp[query], finite) {
                row.fill(R::default());
            }
            (self.output)(query, row);
        }
    }
}

/// The forward pass of one panel of queries, over one block of keys.
#[inline(always)]
#[allow(
    clippy::too_many_arguments,
    reason = "the innermost step; a struct would only rename them"
)]
fn step<S: Simd, R: Real, const VECTORS: usize>(
    simd: S,
    scoring: &Scoring<'_, R>,
    panel: &Panel,
    keys: Range<usize>,
    visibility: Visibility,
    key: Block<'_, R>,
    (value, rows): (&mut Screened<'_, R>, Range<usize>),
    running: Running<'_, R>,
    scores: &mut [R],
    kept: &mut [R],
) {
    let Problem { dim_qk, dim_v, .. } = scoring.visible.problem;
    let columns = panel.columns;
    let scores = &mut scores[..keys.len() * columns];
    Gemm {
        rows: keys.len(),
        depth: dim_qk,
        lhs: key.data,
        lhs_rs: key.stride,
        lhs_cs: 1,
        rhs: running.query,
        rhs_rs: columns,
        out: scores,
        out_rs: columns,
        beta: Beta::Zero,
    }
    .run::<S, VECTORS>(simd);
    scoring.apply(
        simd,
        panel,
        &keys,
        visibility,
        Scores {
            rows: scores,
            stride: columns,
            dsoftcap: &mut [],
        },
    );
    let value = value.for_panel(panel, rows, scores, columns);
    online_softmax::<S, R, VECTORS>(simd, scores, running.maximum, running.sum, running.rescale);

    if let Some(dropout) = scoring.dropout {
        let kept = &mut kept[..keys.len() * columns];
        scoring.drop_weights(dropout, panel, keys.clone(), kept);
        for (score, &kept) in R::vectors_mut::<S>(scores)
            .iter_mut()
            .zip(R::vectors::<S>(kept))
        {
            *score = R::times(simd, *score, kept);
        }
    }
    Gemm {
        rows: panel.queries,
        depth: keys.len(),
        lhs: scores,
        lhs_rs: 1,
        lhs_cs: columns,
        rhs: value.data,
        rhs_rs: value.stride,
        out: running.output,
        out_rs: padded(dim_v),
        beta: Beta::PerRow(running.rescale),
    }
    .run_wide(simd, dim_v.next_multiple_of(R::lanes::<S>()));
}
