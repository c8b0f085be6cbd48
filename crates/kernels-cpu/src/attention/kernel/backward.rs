//! The backward pass of one tile of queries, over all its keys.

use core::f64::consts::LOG2_E;

use pulp::{Simd, WithSimd};

use crate::{
    Problem,
    attention::kernel::{
        backward_step::{Prepared, RequiredGrads, Step},
        scores::Scoring,
        screened::{Screened, all_finite},
        sums::{BiasGradient, dot, sum_over_queries},
        tile::{BACKWARD_KEYS, QUERIES, Tile, WIDEST_PANEL, blocks, padded, prescale},
        transpose::{pack_rows, rows_to_panels},
    },
    math,
    simd::{
        gemm::micro_kernel_rows,
        real::{MAX_LANES, Real},
    },
    threads::scratch::{sum_of_pieces, take},
    view::rows::Head,
};

/// One tile of queries of one head, and where its gradients go.
pub struct TileBackward<'a, R> {
    pub(crate) scoring: Scoring<'a, R>,
    pub(crate) required: RequiredGrads,
    pub(crate) scale: f64,
    pub(crate) sink: f64,
    pub(crate) q: &'a dyn Head<R>,
    pub(crate) k: &'a dyn Head<R>,
    pub(crate) v: &'a dyn Head<R>,
    pub(crate) output: &'a dyn Head<R>,
    pub(crate) output_gradient: &'a dyn Head<R>,
    pub(crate) batch_item: usize,
    pub(crate) head: usize,
    pub(crate) query: usize,
    /// One number per row of the tile.
    pub(crate) logsumexp: &'a [R],
    pub(crate) logsumexp_gradient: Option<&'a [R]>,
    /// Sums of `[len_kv, dim_qk]` and `[len_kv, dim_v]`, rows padded as [`padded`] says.
    pub(crate) key_gradient: &'a mut [R],
    pub(crate) value_gradient: &'a mut [R],
    /// The distances of the head, or empty.
    pub(crate) distance_gradient: &'a mut [R],
    pub(crate) bias_gradient: Option<BiasGradient<'a, R>>,
    pub(crate) sink_gradient: Option<&'a mut R>,
    /// Takes the index of a query in the tile and its row of the gradient.
    pub(crate) query_gradient: &'a mut dyn FnMut(usize, &[R]),
    pub(crate) scratch: &'a mut [R],
}

/// Numbers of scratch that a tile needs.
pub(crate) fn tile_scratch(problem: &Problem) -> usize {
    let Problem {
        len_q,
        len_kv,
        dim_qk,
        dim_v,
        ..
    } = *problem;
    let queries = padded(len_q.min(QUERIES));
    let keys = len_kv.min(BACKWARD_KEYS);
    let (padded_qk, padded_v) = (padded(dim_qk), padded(dim_v));
    sum_of_pieces([
        queries * padded_qk,
        queries * padded_v,
        padded_v,
        queries * dim_qk,
        queries * dim_v,
        queries * padded_qk,
        queries * padded_qk,
        queries * padded_v,
        queries,
        queries,
        keys * (queries + MAX_LANES),
        keys * (queries + MAX_LANES),
        keys * WIDEST_PANEL,
        keys * WIDEST_PANEL,
        keys * padded_qk,
        keys * padded_qk,
        keys * padded_v,
    ])
}

impl<R: Real> WithSimd for TileBackward<'_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
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
        let (queries, columns) = (tile.queries, tile.columns());
        let block_keys = len_kv.min(BACKWARD_KEYS);
        let mut scratch = core::mem::take(&mut self.scratch);
        let (padded_qk, padded_v) = (padded(dim_qk), padded(dim_v));
        let query_rows = take(&mut scratch, queries * padded_qk);
        let gradient_rows = take(&mut scratch, queries * padded_v);
        let output_row = take(&mut scratch, padded_v);
        let query = take(&mut scratch, columns * dim_qk);
        let output_gradient = take(&mut scratch, columns * dim_v);
        let query_gradient = take(&mut scratch, queries * padded_qk);
        let packed_query = take(&mut scratch, columns * padded_qk);
        let packed_output_gradient = take(&mut scratch, columns * padded_v);
        let logsumexp = take(&mut scratch, columns);
        let neg_delta = take(&mut scratch, columns);
        // The row stride has one vector of padding, which avoids L1 set conflicts down a column.
        let stride = columns + tile.lanes;
        let weights = take(&mut scratch, block_keys * stride);
        let score_gradients = take(&mut scratch, block_keys * stride);
        let dsoftcap = take(&mut scratch, block_keys * 2 * tile.lanes);
        let kept = take(&mut scratch, block_keys * 2 * tile.lanes);
        let key_buffer = take(&mut scratch, block_keys * padded_qk);
        let value_buffer = take(&mut scratch, block_keys * padded_v);
        let screened_buffer = take(&mut scratch, block_keys * padded_qk);

        let kept_scale = self
            .scoring
            .dropout
            .map_or(1.0, |dropout| dropout.kept_scale());
        let gradient_factor = R::from_f64(kept_scale);
        for (index, row) in query_rows.chunks_exact_mut(padded_qk).enumerate() {
            self.q.row(tile.query + index, &mut row[..dim_qk]);
            row[dim_qk..].fill(R::default());
        }
        let scale = prescale(self.scale, query_rows);
        let query_factor = R::from_f64(scale * LOG2_E);
        output_row[dim_v..].fill(R::default());
        let infinity = R::default() - R::NEG_INFINITY;
        let rows = gradient_rows.chunks_exact_mut(padded_v);
        for (index, row) in rows.enumerate() {
            self.output_gradient
                .row(tile.query + index, &mut row[..dim_v]);
            row[dim_v..].fill(R::default());
            self.output
                .row(tile.query + index, &mut output_row[..dim_v]);
            let of_logsumexp = self
                .logsumexp_gradient
                .map_or(R::default(), |rows| rows[index]);
            let query_row = &mut query_rows[index * padded_qk..][..padded_qk];
            let at = [tile.batch_item, tile.head, tile.query + index];
            // In the layout that the products below read.
            let finite = || {
                all_finite(simd, [&*query_row].into_iter(), query_factor)
                    && all_finite(simd, [&*row].into_iter(), gradient_factor)
            };
            let of_row = self.logsumexp[index];
            (logsumexp[index], neg_delta[index]) =
                if (self.scoring).fully_masked(at, self.sink, of_row, finite) {
                    // Zeros in place of query and output gradient, so that NaN in them does not spread: 0 · NaN is NaN. Only a sink, if
                    // there is one, receives the gradient of the logsumexp.
                    query_row.fill(R::default());
                    row.fill(R::default());
                    let no_sink = self.sink == f64::NEG_INFINITY;
                    (infinity, if no_sink { R::default() } else { of_logsumexp })
                } else {
                    let units = R::saturated(of_row.to_f64() * LOG2_E);
                    (units, of_logsumexp - dot::<S, R>(simd, row, output_row))
                };
        }
        // Columns without a query have weights of 0, whatever the values are.
        logsumexp[queries..].fill(infinity);
        neg_delta[queries..].fill(R::default());
        if let Some(gradient) = self.sink_gradient.take() {
            let sum: f64 = (0..queries)
                .map(|query| {
                    // A row with no term but an absent sink has no weight for it.
                    if self.sink == f64::NEG_INFINITY {
                        return 0.0;
                    }
                    let exponent = self.sink - self.logsumexp[query].to_f64();
                    // A logsumexp may have rounded to less than the sink. NaN stays.
                    let weight = if exponent > 0.0 {
                        1.0
                    } else {
                        math::exp(exponent)
                    };
                    weight * neg_delta[query].to_f64()
                })
                .sum();
            *gradient = *gradient + R::from_f64(sum);
        }
        rows_to_panels(&tile, dim_qk, padded_qk, query_rows, query_factor, query);
        rows_to_panels(
            &tile,
            dim_v,
            padded_v,
            gradient_rows,
            gradient_factor,
            output_gradient,
        );
        if self.required.k {
            let scale = R::from_f64(scale);
            pack_rows(simd, &tile, padded_qk, query_rows, scale, packed_query);
        }
        if self.required.v {
            pack_rows(
                simd,
                &tile,
                padded_v,
                gradient_rows,
                gradient_factor,
                packed_output_gradient,
            );
        }
        query_gradient.fill(R::default());

        let prepared = Prepared {
            query,
            output_gradient,
            packed_query,
            packed_output_gradient,
            logsumexp,
            neg_delta,
        };
        let all_queries = tile.query..tile.query + queries;
        let keys = self
            .scoring
            .visible
            .key_range(tile.batch_item, all_queries.clone());
        let heads = tile.head..tile.head + 1;
        let runs = self
            .scoring
            .visible
            .runs(tile.batch_item, heads, all_queries.clone(), keys);
        for keys in runs.flat_map(|run| blocks(run, BACKWARD_KEYS)) {
            let mut panels = (0..tile.count())
                .filter_map(|index| {
                    let panel = tile.panel(index);
                    let rows = micro_kernel_rows::<R, S>();
                    let seen = self.scoring.visible.seen_by(&panel, &keys, rows)?;
                    Some((index, panel, seen))
                })
                .peekable();
            // Keys that no panel sees are not even copied.
            if panels.peek().is_none() {
                continue;
            }
            let width = dim_qk.next_multiple_of(tile.lanes);
            let key = self.k.block(keys.clone(), dim_qk, width, key_buffer);
            let head = [tile.batch_item, tile.head];
            let search = (self.scoring).may_hide_single_keys(head, &all_queries, &keys);
            let sizes = [keys.len(), dim_qk, width];
            let mut screened = Screened::new(simd, key, sizes, screened_buffer, search);
            let value = self.v.block(keys.clone(), dim_v, dim_v, value_buffer);
            // First row and row after the last that each panel has computed.
            let mut computed = [(0, 0); QUERIES / 2];
            for (index, panel, (part, visibility)) in panels {
                let first = part.start - keys.start;
                let end = part.end - keys.start;
                computed[index] = (first, end);
                let from = first * stride + panel.column;
                let to = (end - 1) * stride + panel.column + panel.columns;
                let step = Step {
                    scoring: &self.scoring,
                    required: self.required,
                    panel: &panel,
                    keys: part,
                    visibility,
                    key: key.after(first),
                    screened: (&mut screened, first..end),
                    value: value.after(first),
                    prepared: &prepared,
                    query_gradient: &mut query_gradient[panel.column * padded_qk..],
                    weights: &mut weights[from..to],
                    score_gradients: &mut score_gradients[from..to],
                    stride,
                    dsoftcap,
                    kept,
                    distance_gradient: self.distance_gradient,
                    bias_gradient: self.bias_gradient.as_mut(),
                };
                if panel.columns == tile.lanes {
                    step.run::<S, 1>(simd);
                } else {
                    step.run::<S, 2>(simd);
                }
            }
            let computed = &computed[..tile.count()];
            for (required, dim, lhs, packed_rhs, sums) in [
                (
                    self.required.v,
                    dim_v,
                    &*weights,
                    prepared.packed_output_gradient,
                    &mut *self.value_gradient,
                ),
                (
                    self.required.k,
                    dim_qk,
                    &*score_gradients,
                    prepared.packed_query,
                    &mut *self.key_gradient,
                ),
            ] {
                if required {
                    let sums = &mut sums[keys.start * padded(dim)..];
                    sum_over_queries::<S, R>(
                        simd,
                        &tile,
                        keys.len(),
                        dim,
                        computed,
                        lhs,
                        stride,
                        packed_rhs,
                        sums,
                    );
                }
            }
        }
        if self.required.q {
            let scale = prescale(self.scale, query_gradient);
            let factor = R::splat(simd, R::from_f64(scale));
            for (query, row) in query_gradient.chunks_exact_mut(padded_qk).enumerate() {
                for x in R::vectors_mut::<S>(row) {
                    *x = R::times(simd, *x, factor);
                }
                if prepared.logsumexp[query] == infinity {
                    row.fill(R::default());
                }
                (self.query_gradient)(query, &row[..dim_qk]);
            }
        }
    }
}
