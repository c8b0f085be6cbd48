//! The backward pass of one tile of queries, over all its keys.

use core::f64::consts::LOG2_E;

use pulp::{Simd, WithSimd};

use crate::{
    Problem,
    attention::kernel::{
        operands::{Operands, WriteRow, dot_products},
        screened::{Screened, all_finite},
        seen::Scores,
        sums::{BiasGradient, SumOverQueries, dot},
        tile::{BACKWARD_KEYS, QUERIES, WIDEST_PANEL, padded, prescale},
        transpose::{pack_rows, rows_to_panels},
        weights::weigh,
    },
    math,
    simd::{
        gemm::{Beta, Gemm, micro_kernel_rows},
        real::{MAX_LANES, Real},
    },
    threads::scratch::take,
    view::rows::Head,
};

/// The buffers of a tile with vectors of any width, in the order of [`TileBackward::with_simd`].
pub(crate) fn pieces(problem: &Problem) -> [usize; 18] {
    let (padded_qk, padded_v) = (padded(problem.dim_qk), padded(problem.dim_v));
    let queries = padded(problem.len_q.min(QUERIES));
    let keys = problem.len_kv.min(BACKWARD_KEYS);
    [
        queries * padded_qk,
        queries * padded_v,
        padded_v,
        queries * problem.dim_qk,
        queries * problem.dim_v,
        queries * padded_qk,
        queries * padded_qk,
        queries * padded_v,
        queries,
        queries,
        keys * (queries + MAX_LANES),
        keys * (queries + MAX_LANES),
        keys * WIDEST_PANEL,
        keys * WIDEST_PANEL,
        keys * WIDEST_PANEL,
        keys * padded_qk,
        keys * padded_v,
        keys * padded_qk,
    ]
}

/// One tile of queries of one head, and where its gradients go.
pub struct TileBackward<'a, R> {
    pub(crate) operands: Operands<'a, R>,
    /// From the first query of the tile on.
    pub(crate) output: &'a dyn Head<R>,
    pub(crate) output_gradient: &'a dyn Head<R>,
    /// One number per row of the tile.
    pub(crate) logsumexp: &'a [R],
    pub(crate) logsumexp_gradient: Option<&'a [R]>,
    /// Sums of `[len_kv, dim_qk]` and `[len_kv, dim_v]`, rows padded as [`padded`] says, or empty.
    pub(crate) key_gradient: &'a mut [R],
    pub(crate) value_gradient: &'a mut [R],
    /// The distances of the head, or empty.
    pub(crate) distance_gradient: &'a mut [R],
    /// The gradients of what the score function has captured for the head, or empty.
    pub(crate) function_gradient: &'a mut [R],
    pub(crate) bias_gradient: Option<BiasGradient<'a, R>>,
    pub(crate) sink_gradient: Option<&'a mut R>,
    pub(crate) query_gradient: Option<WriteRow<'a, R>>,
    pub(crate) scratch: &'a mut [R],
}

impl<R: Real> WithSimd for TileBackward<'_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let operands = self.operands;
        let scoring = operands.scoring;
        let problem = scoring.problem;
        let (dim_qk, dim_v) = (problem.dim_qk, problem.dim_v);
        let (padded_qk, padded_v) = (padded(dim_qk), padded(dim_v));
        let tile = operands.tile::<S>();
        let (queries, columns) = (tile.queries, tile.columns());
        // The row stride has one vector of padding, which avoids L1 set conflicts down a column.
        let stride = columns + tile.lanes;
        let of_keys = !self.key_gradient.is_empty();
        let of_values = !self.value_gradient.is_empty();
        let of_distances = !self.distance_gradient.is_empty();
        let of_function = !self.function_gradient.is_empty();
        let of_scores = self.bias_gradient.is_some() || of_distances || of_function;
        let mut scratch = self.scratch;
        let [
            query_rows,
            gradient_rows,
            output_row,
            query,
            output_gradient,
            query_gradient,
            packed_query,
            packed_output_gradient,
            logsumexp,
            neg_delta,
            weights,
            score_gradients,
            products,
            dsoftcap,
            kept,
            key_buffer,
            value_buffer,
            screened_buffer,
        ] = pieces(&problem).map(|len| take(&mut scratch, len));

        for rows in [
            &mut *query_rows,
            &mut *gradient_rows,
            &mut *output_row,
            &mut *query_gradient,
        ] {
            rows.fill(R::default());
        }
        let gradient_factor = R::from_f64(scoring.kept_scale());
        (operands.q).copy(queries.range(), dim_qk, padded_qk, query_rows);
        let scale = prescale(scoring.scale(), query_rows);
        let query_factor = R::from_f64(scale * LOG2_E);
        (self.output_gradient).copy(queries.range(), dim_v, padded_v, gradient_rows);
        let sink = scoring.sink(queries.head);
        let infinity = R::default() - R::NEG_INFINITY;
        let rows = gradient_rows.chunks_exact_mut(padded_v);
        for ((index, query), row) in queries.range().enumerate().zip(rows) {
            (self.output).copy(index..index + 1, dim_v, padded_v, output_row);
            let of_logsumexp = self.logsumexp_gradient;
            let of_logsumexp = of_logsumexp.map_or(R::default(), |rows| rows[index]);
            let query_row = &mut query_rows[index * padded_qk..][..padded_qk];
            let at = [queries.batch_item, queries.head, query];
            // Times the factors, as the products below read the rows.
            let finite = || {
                all_finite(simd, [&*query_row].into_iter(), query_factor)
                    && all_finite(simd, [&*row].into_iter(), gradient_factor)
            };
            let of_row = self.logsumexp[index];
            (logsumexp[index], neg_delta[index]) = if scoring.fully_masked(at, of_row, finite) {
                // Zeros in place of query and output gradient, so that NaN in them does not spread: 0 · NaN is NaN. Only a sink, if
                // there is one, receives the gradient of the logsumexp.
                query_row.fill(R::default());
                row.fill(R::default());
                let no_sink = sink == f64::NEG_INFINITY;
                (infinity, if no_sink { R::default() } else { of_logsumexp })
            } else {
                let units = R::saturated(of_row.to_f64() * LOG2_E);
                (units, of_logsumexp - dot::<S, R>(simd, row, output_row))
            };
        }
        // Columns without a query have weights of 0, whatever their scores are.
        logsumexp[queries.count..].fill(infinity);
        neg_delta[queries.count..].fill(R::default());
        // An absent sink has no weight.
        if let Some(gradient) = self.sink_gradient.take()
            && sink != f64::NEG_INFINITY
        {
            let terms = self.logsumexp.iter().zip(&*neg_delta);
            let terms = terms.map(|(logsumexp, neg_delta)| {
                let exponent = sink - logsumexp.to_f64();
                // A logsumexp may have rounded to less than the sink. NaN stays.
                let exponent = if exponent > 0.0 { 0.0 } else { exponent };
                math::exp(exponent) * neg_delta.to_f64()
            });
            *gradient = *gradient + R::from_f64(terms.sum());
        }
        rows_to_panels(&tile, dim_qk, padded_qk, query_rows, query_factor, query);
        let (rows, factor) = (&*gradient_rows, gradient_factor);
        rows_to_panels(&tile, dim_v, padded_v, rows, factor, output_gradient);
        if of_keys {
            let scale = R::from_f64(scale);
            pack_rows(simd, &tile, padded_qk, query_rows, scale, packed_query);
        }
        if of_values {
            let packed = &mut *packed_output_gradient;
            pack_rows(simd, &tile, padded_v, rows, factor, packed);
        }

        let width = dim_qk.next_multiple_of(tile.lanes);
        let rows = micro_kernel_rows::<R, S>();
        for (keys, hides, panels) in operands.seen_blocks(tile, BACKWARD_KEYS, rows) {
            let block = keys.clone();
            let key = (operands.k).block(block.clone(), dim_qk, width, false, key_buffer);
            let sizes = [keys.len(), dim_qk, width];
            let mut screened = Screened::new(simd, key, sizes, screened_buffer, hides);
            let value = (operands.v).block(block, dim_v, dim_v, false, value_buffer);
            // First row and row after the last that each panel has computed.
            let mut computed = [(0, 0); QUERIES / 2];
            for seen in panels {
                let (panel, count) = (&seen.panel, seen.keys.len());
                let (column, columns) = (panel.column, panel.columns);
                let first = seen.keys.start - keys.start;
                computed[column / (2 * tile.lanes)] = (first, first + count);
                let from = first * stride + column;
                let to = from + (count - 1) * stride + columns;
                let [mut weights, mut gradients] =
                    [&mut *weights, &mut *score_gradients].map(|all| Scores {
                        seen: &seen,
                        numbers: &mut all[from..to],
                        stride,
                    });
                dot_products(simd, key.after(first), dim_qk, query, &mut weights);
                let of_softcap = scoring.softcap.map_or(0, |_| count * columns);
                let dsoftcap = &mut dsoftcap[..of_softcap];
                let of_function = scoring
                    .score_function
                    .map_or(0, |_| count * panel.queries.count);
                let products = &mut products[..of_function];
                scoring.apply(simd, &mut weights, products, dsoftcap);
                // The sums below include columns without a query. A bias shared by all queries was added to these columns too, and may be NaN.
                if panel.queries.count < columns {
                    for scores in weights.rows() {
                        scores[panel.queries.count..].fill(R::NEG_INFINITY);
                    }
                }
                let screened = screened.for_panel(first, &mut weights);
                // If this product is skipped, the score gradients computed below are never read.
                if self.query_gradient.is_some() || of_keys || of_scores {
                    let rows = value.after(first);
                    dot_products(simd, rows, dim_v, output_gradient, &mut gradients);
                }
                let statistics = [&*logsumexp, &*neg_delta].map(|all| &all[column..][..columns]);
                if let Some(dropout) = scoring.options.dropout {
                    let kept = &mut kept[..count * columns];
                    scoring.drop_weights(dropout, &seen, kept);
                    weigh::<S, R, true>(simd, &mut weights, &mut gradients, kept, statistics);
                } else {
                    weigh::<S, R, false>(simd, &mut weights, &mut gradients, &[], statistics);
                }
                if let Some(sums) = &mut self.bias_gradient {
                    sums.add(simd, &gradients);
                }
                if of_distances {
                    let (start, queries) = (seen.keys.start, panel.queries);
                    let (_, last) = scoring.distances(queries.batch_item, queries.first, start);
                    let rows = gradients.numbers.chunks(stride);
                    for (row, skipped) in rows.zip(0..count) {
                        let sums = &mut self.distance_gradient[last - skipped..];
                        for (sum, &gradient) in sums.iter_mut().zip(&row[..queries.count]) {
                            *sum = *sum + gradient;
                        }
                    }
                }
                for (row, dsoftcap) in gradients.rows().zip(dsoftcap.chunks_exact(columns)) {
                    for (gradient, &derivative) in row.iter_mut().zip(dsoftcap) {
                        *gradient = *gradient * derivative;
                    }
                }
                if scoring.score_function.is_some() {
                    let sums = &mut *self.function_gradient;
                    scoring.function_gradients(products, &mut gradients, sums);
                }
                if self.query_gradient.is_some() {
                    Gemm {
                        rows: panel.queries.count,
                        depth: count,
                        lhs: gradients.numbers,
                        lhs_rs: 1,
                        lhs_cs: stride,
                        rhs: screened.data,
                        rhs_rs: screened.stride,
                        out: &mut query_gradient[column * padded_qk..],
                        out_rs: padded_qk,
                        beta: Beta::One,
                    }
                    .run(simd, width);
                }
            }
            let sums = SumOverQueries {
                tile: &tile,
                keys,
                computed: &computed[..tile.count()],
                stride,
            };
            if of_values {
                let rhs = &*packed_output_gradient;
                sums.add(simd, weights, rhs, padded_v, self.value_gradient);
            }
            if of_keys {
                sums.add(
                    simd,
                    score_gradients,
                    packed_query,
                    padded_qk,
                    self.key_gradient,
                );
            }
        }
        if let Some(write) = self.query_gradient {
            let scale = prescale(scoring.scale(), query_gradient);
            let factor = R::splat(simd, R::from_f64(scale));
            let rows = query_gradient.chunks_exact_mut(padded_qk);
            for (query, row) in rows.enumerate().take(queries.count) {
                for x in R::vectors_mut::<S>(row) {
                    *x = R::times(simd, *x, factor);
                }
                // The weights of zero of a row that sees no key are multiplied by keys that another row may see.
                let at = [queries.batch_item, queries.head, queries.first + query];
                let finite = || all_finite(simd, [&row[..dim_qk]].into_iter(), R::from_f64(1.0));
                let of_row = self.logsumexp[query];
                if logsumexp[query] == infinity || scoring.fully_masked(at, of_row, finite) {
                    row.fill(R::default());
                }
                write(query, &row[..dim_qk]);
            }
        }
    }
}
