//! The backward pass of one panel of queries, over one block of keys.

use core::ops::Range;

use pulp::Simd;

use crate::{
    attention::kernel::{
        scores::Scoring, screened::Screened, sums::BiasGradient, tile::padded, visibility::Seen,
    },
    simd::{
        gemm::{Beta, Gemm},
        real::Real,
    },
    view::rows::Block,
};

/// Which gradients are required.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequiredGrads {
    pub(crate) q: bool,
    pub(crate) k: bool,
    pub(crate) v: bool,
    /// The gradient of a bias.
    pub(crate) scores: bool,
}

/// The buffers of a tile that do not change from one block of keys to the next.
pub(crate) struct Prepared<'s, R> {
    /// `[dim_qk, columns]` panels of the query, times scale and log2(e).
    pub(crate) query: &'s [R],
    /// `[dim_v, columns]` panels of the output's gradient.
    pub(crate) output_gradient: &'s [R],
    pub(crate) packed_query: &'s [R],
    pub(crate) packed_output_gradient: &'s [R],
    /// logsumexp · log2(e); +∞ for fully masked rows, which makes their weights 0.
    pub(crate) logsumexp: &'s [R],
    /// −delta: the gradient of the logsumexp minus the dot product of output and output gradient (FlashAttention-2's D).
    pub(crate) neg_delta: &'s [R],
}

/// One panel of queries and one block of keys.
pub(crate) struct Step<'a, 'b, 'k, R> {
    pub(crate) scoring: &'a Scoring<'b, R>,
    pub(crate) required: RequiredGrads,
    /// The panel, and the keys whose rows are computed.
    pub(crate) seen: &'a Seen,
    pub(crate) key: Block<'a, R>,
    /// The keys of the block, and which of its rows these are.
    pub(crate) screened: (&'a mut Screened<'k, R>, Range<usize>),
    pub(crate) value: Block<'a, R>,
    pub(crate) prepared: &'a Prepared<'a, R>,
    /// `[queries, padded(dim_qk)]` of the panel.
    pub(crate) query_gradient: &'a mut [R],
    /// One row per key, `stride` numbers apart: after dropout.
    pub(crate) weights: &'a mut [R],
    pub(crate) score_gradients: &'a mut [R],
    pub(crate) stride: usize,
    pub(crate) dsoftcap: &'a mut [R],
    pub(crate) kept: &'a mut [R],
    pub(crate) distance_gradient: &'a mut [R],
    pub(crate) bias_gradient: Option<&'a mut BiasGradient<'b, R>>,
}

impl<R: Real> Step<'_, '_, '_, R> {
    /// Weights and gradients of the scores, and what follows from them for the queries.
    #[inline(always)]
    pub(crate) fn run<S: Simd>(self, simd: S) {
        let problem = self.scoring.visible.problem;
        let (dim_qk, dim_v) = (problem.dim_qk, problem.dim_v);
        let (panel, keys, stride) = (&self.seen.panel, &self.seen.keys, self.stride);
        let (count, columns) = (keys.len(), panel.columns);
        let (weights, gradients) = (self.weights, self.score_gradients);
        let panels = |all: &[R], dim: usize| {
            panel.column * dim..(panel.column * dim + columns * dim).min(all.len())
        };
        Gemm {
            rows: count,
            depth: dim_qk,
            lhs: self.key.data,
            lhs_rs: self.key.stride,
            lhs_cs: 1,
            rhs: &self.prepared.query[panels(self.prepared.query, dim_qk)],
            rhs_rs: columns,
            out: weights,
            out_rs: stride,
            beta: Beta::Zero,
        }
        .run(simd, columns);
        let dsoftcap: &mut [R] = if self.scoring.softcap.is_some() {
            &mut self.dsoftcap[..count * columns]
        } else {
            &mut []
        };
        self.scoring
            .apply(simd, self.seen, weights, stride, dsoftcap);
        // What follows sums over the columns, and a bias for all queries, which may be NaN, is in those without a query too.
        if panel.queries < columns {
            for scores in weights.chunks_mut(stride) {
                scores[panel.queries..columns].fill(R::NEG_INFINITY);
            }
        }
        let (screened, rows) = self.screened;
        let screened = screened.for_panel(panel, rows, weights, stride);
        // Without it, what follows computes gradients that are never read.
        if self.required.q || self.required.k || self.required.scores {
            Gemm {
                rows: count,
                depth: dim_v,
                lhs: self.value.data,
                lhs_rs: self.value.stride,
                lhs_cs: 1,
                rhs: &self.prepared.output_gradient[panels(self.prepared.output_gradient, dim_v)],
                rhs_rs: columns,
                out: gradients,
                out_rs: stride,
                beta: Beta::Zero,
            }
            .run(simd, columns);
        }

        let statistics = panel.column..panel.column + columns;
        let logsumexp = &self.prepared.logsumexp[statistics.clone()];
        let neg_delta = &self.prepared.neg_delta[statistics];
        let statistics = [logsumexp, neg_delta];
        if let Some(dropout) = self.scoring.dropout {
            let kept = &mut self.kept[..count * columns];
            self.scoring.drop_weights(dropout, self.seen, kept);
            weigh::<S, R, true>(simd, weights, gradients, stride, kept, statistics);
        } else {
            weigh::<S, R, false>(simd, weights, gradients, stride, &[], statistics);
        }
        if let Some(sums) = self.bias_gradient {
            sums.add(simd, panel, keys, gradients, stride);
        }
        if !self.distance_gradient.is_empty() {
            let visible = &self.scoring.visible;
            let (_, first) = visible.distances(panel.batch_item, panel.query, keys.start);
            for (row, skipped) in gradients.chunks(stride).zip(0..count) {
                let sums = &mut self.distance_gradient[first - skipped..];
                for (sum, &gradient) in sums.iter_mut().zip(&row[..panel.queries]) {
                    *sum = *sum + gradient;
                }
            }
        }
        if self.scoring.softcap.is_some() {
            for (row, dsoftcap) in gradients
                .chunks_mut(stride)
                .zip(dsoftcap.chunks_exact(columns))
            {
                for (gradient, &derivative) in row.iter_mut().zip(dsoftcap) {
                    *gradient = *gradient * derivative;
                }
            }
        }
        if self.required.q {
            Gemm {
                rows: panel.queries,
                depth: count,
                lhs: gradients,
                lhs_rs: 1,
                lhs_cs: stride,
                rhs: screened.data,
                rhs_rs: screened.stride,
                out: self.query_gradient,
                out_rs: padded(dim_qk),
                beta: Beta::One,
            }
            .run(simd, dim_qk.next_multiple_of(R::lanes::<S>()));
        }
    }
}

/// Turns scores into weights, and the gradients of weights into those of scores.
#[inline(always)]
fn weigh<S: Simd, R: Real, const DROPOUT: bool>(
    simd: S,
    weights: &mut [R],
    gradients: &mut [R],
    stride: usize,
    kept: &[R],
    statistics: [&[R]; 2],
) {
    if statistics[0].len() == R::lanes::<S>() {
        weigh_vectors::<S, R, DROPOUT, 1>(simd, weights, gradients, stride, kept, statistics);
    } else {
        weigh_vectors::<S, R, DROPOUT, 2>(simd, weights, gradients, stride, kept, statistics);
    }
}

/// As [`weigh`], for rows of so many vectors.
#[inline(always)]
fn weigh_vectors<S: Simd, R: Real, const DROPOUT: bool, const VECTORS: usize>(
    simd: S,
    weights: &mut [R],
    gradients: &mut [R],
    stride: usize,
    kept: &[R],
    statistics: [&[R]; 2],
) {
    let columns = VECTORS * R::lanes::<S>();
    let [logsumexp, neg_delta] = statistics.map(|numbers| R::vectors::<S>(numbers));
    let rows = weights.chunks_mut(stride).zip(gradients.chunks_mut(stride));
    for (row, (weights, gradients)) in rows.enumerate() {
        let weights = R::vectors_mut::<S>(&mut weights[..columns]);
        let gradients = R::vectors_mut::<S>(&mut gradients[..columns]);
        let kept: &[R] = if DROPOUT {
            &kept[row * columns..][..columns]
        } else {
            &[]
        };
        let kept = R::vectors::<S>(kept);
        for vector in 0..VECTORS {
            let exponent = R::minus(simd, weights[vector], logsumexp[vector]);
            let weight = R::exp2_of_negative(simd, exponent);
            let (gradient, shift) = (gradients[vector], neg_delta[vector]);
            let (inner, dropped) = if DROPOUT {
                (
                    R::mul_add(simd, gradient, kept[vector], shift),
                    R::times(simd, weight, kept[vector]),
                )
            } else {
                (R::plus(simd, gradient, shift), weight)
            };
            gradients[vector] = weighted::<R, S>(simd, weight, inner);
            weights[vector] = dropped;
        }
    }
}

/// `weight · x`, and 0 where the weight is 0, whatever `x` is: what is hidden may have overflowed. A NaN in the weight stays.
#[inline(always)]
fn weighted<R: Real, S: Simd>(simd: S, weight: R::Vector<S>, x: R::Vector<S>) -> R::Vector<S> {
    let zero = R::splat(simd, R::default());
    R::select_less(simd, zero, weight, R::times(simd, weight, x), weight)
}
