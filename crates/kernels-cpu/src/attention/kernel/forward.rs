//! The forward pass of one tile of queries.

use core::f64::consts::LOG2_E;

use pulp::{Simd, WithSimd};

use crate::{
    Problem,
    attention::kernel::{
        operands::{Operands, WriteRow, dot_products},
        screened::{Screened, all_finite},
        seen::Scores,
        softmax::{finish, online_softmax},
        tile::{FORWARD_KEYS, QUERIES, WIDEST_PANEL, padded, prescale},
        transpose::rows_to_panels,
    },
    simd::{
        gemm::{Beta, Gemm},
        real::Real,
    },
    threads::scratch::take,
};

/// The buffers of a tile with vectors of any width, in the order of [`TileForward::with_simd`].
pub(crate) fn pieces(problem: &Problem) -> [usize; 11] {
    let (padded_qk, padded_v) = (padded(problem.dim_qk), padded(problem.dim_v));
    let queries = padded(problem.len_q.min(QUERIES));
    let keys = problem.len_kv.min(FORWARD_KEYS);
    [
        queries * padded_qk,
        queries * problem.dim_qk,
        queries * padded_v,
        queries,
        queries,
        queries,
        keys * WIDEST_PANEL,
        keys * WIDEST_PANEL,
        keys * padded_qk,
        keys * padded_v,
        keys * padded_v,
    ]
}

/// One tile of queries of one head.
pub struct TileForward<'a, R> {
    pub(crate) operands: Operands<'a, R>,
    pub(crate) logsumexp: &'a mut [R],
    pub(crate) output: WriteRow<'a, R>,
    pub(crate) scratch: &'a mut [R],
}

impl<R: Real> WithSimd for TileForward<'_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let operands = self.operands;
        let scoring = operands.scoring;
        let problem = scoring.problem;
        let (dim_qk, dim_v) = (problem.dim_qk, problem.dim_v);
        let (padded_qk, padded_v) = (padded(dim_qk), padded(dim_v));
        let tile = operands.tile::<S>();
        let queries = tile.queries;
        let mut scratch = self.scratch;
        // `output` has the sums of the values so far, `[queries, padded_v]`; `sum` the weights so far, relative to `maximum`, the largest
        // score so far; `rescale` the factor of both when the maximum grows.
        let [
            rows,
            query,
            output,
            maximum,
            sum,
            rescale,
            scores,
            kept,
            key_buffer,
            value_buffer,
            screened_buffer,
        ] = pieces(&problem).map(|len| take(&mut scratch, len));

        (operands.q).copy(queries.range(), dim_qk, padded_qk, rows);
        let factor = R::from_f64(prescale(scoring.scale(), rows) * LOG2_E);
        rows_to_panels(&tile, dim_qk, padded_qk, rows, factor, query);
        output.fill(R::default());
        maximum.fill(R::NEG_INFINITY);
        sum.fill(R::default());

        let width = dim_v.next_multiple_of(tile.lanes);
        for (keys, hides, panels) in operands.seen_blocks(tile, FORWARD_KEYS, 1) {
            let key = operands
                .k
                .block(keys.clone(), dim_qk, dim_qk, false, key_buffer);
            let value = operands
                .v
                .block(keys.clone(), dim_v, width, false, value_buffer);
            let sizes = [keys.len(), dim_v, width];
            let mut value = Screened::new(simd, value, sizes, screened_buffer, hides);
            for seen in panels {
                let panel = &seen.panel;
                let columns = panel.column..panel.column + panel.columns;
                let first = seen.keys.start - keys.start;
                let mut scores = Scores {
                    seen: &seen,
                    numbers: &mut scores[..seen.keys.len() * panel.columns],
                    stride: panel.columns,
                };
                dot_products(simd, key.after(first), dim_qk, query, &mut scores);
                scoring.apply(simd, &mut scores, &mut [], &mut []);
                let value = value.for_panel(first, &mut scores);
                let scores = scores.numbers;
                let rescale = &mut rescale[columns.clone()];
                online_softmax::<S, R>(
                    simd,
                    scores,
                    &mut maximum[columns.clone()],
                    &mut sum[columns],
                    rescale,
                );
                if let Some(dropout) = scoring.options.dropout {
                    let kept = &mut kept[..scores.len()];
                    scoring.drop_weights(dropout, &seen, kept);
                    let scores = R::vectors_mut::<S>(scores).iter_mut();
                    for (score, &kept) in scores.zip(R::vectors::<S>(kept)) {
                        *score = R::times(simd, *score, kept);
                    }
                }
                Gemm {
                    rows: panel.queries.count,
                    depth: seen.keys.len(),
                    lhs: scores,
                    lhs_rs: 1,
                    lhs_cs: panel.columns,
                    rhs: value.data,
                    rhs_rs: value.stride,
                    out: &mut output[panel.column * padded_v..],
                    out_rs: padded_v,
                    beta: Beta::PerRow(rescale),
                }
                .run(simd, width);
            }
        }

        let (kept_scale, sink) = (scoring.kept_scale(), scoring.sink(queries.head));
        for (query, row) in output
            .chunks_exact_mut(padded_v)
            .enumerate()
            .take(queries.count)
        {
            let (maximum, sum) = (maximum[query].to_f64(), sum[query].to_f64());
            let (logsumexp, factor) = finish(maximum, sum, sink);
            self.logsumexp[query] = R::from_f64(logsumexp);
            let factor = R::splat(simd, R::from_f64(kept_scale * factor));
            for x in R::vectors_mut::<S>(row) {
                *x = R::times(simd, *x, factor);
            }
            let row = &mut row[..dim_v];
            let at = [queries.batch_item, queries.head, queries.first + query];
            let finite = || all_finite(simd, [&*row].into_iter(), R::from_f64(1.0));
            // A weight of zero times a value of NaN, which another row may see, is NaN.
            if scoring.fully_masked(at, self.logsumexp[query], finite) {
                row.fill(R::default());
            }
            (self.output)(query, row);
        }
    }
}
