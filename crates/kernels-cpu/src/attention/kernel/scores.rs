//! What happens to the scores of a panel between the dot products and the softmax.
//!
//! Scores, and the logsumexp that they are compared with, are multiplied by log2(e), because the exponential works with powers of two.

use core::ops::Range;

use pulp::Simd;

use crate::{
    AttentionDropout, Options, Problem,
    attention::{
        function::{Captured, ScoreLoops, VisibleFunction, VisibleLoops},
        kernel::{
            seen::{Scores, Seen, Visibility},
            softcap::Softcap,
            tile::{Queries, WIDEST_PANEL},
        },
    },
    simd::real::Real,
};

/// The options that act on scores.
#[derive(Clone, Copy)]
pub(crate) struct Scoring<'a, R> {
    pub(crate) problem: Problem,
    pub(crate) options: Options<'a, R>,
    /// `[heads_q, distances]`
    pub(crate) distance_bias: Option<&'a [R]>,
    /// The softcap of the options.
    pub(crate) softcap: Option<Softcap<R>>,
    pub(crate) score_function: Option<(&'a dyn ScoreLoops<R>, &'a [Captured<'a, R>])>,
    pub(crate) visible_function: Option<(&'a dyn VisibleLoops<R>, VisibleFunction<'a>)>,
}

impl<R: Real> Scoring<'_, R> {
    /// Score function, softcap, biases and mask, in the order of the contract.
    ///
    /// `products` gets the scores before the score function, in rows of the queries of the panel; it may be empty. `dsoftcap` gets the derivative of
    /// the softcap, in rows of the panel's columns; it may be empty.
    #[inline(always)]
    pub(crate) fn apply<S: Simd>(
        &self,
        simd: S,
        scores: &mut Scores<'_, R>,
        products: &mut [R],
        dsoftcap: &mut [R],
    ) {
        if self.score_function.is_some() {
            self.apply_function(scores, products);
        }
        if let Some(softcap) = self.softcap {
            softcap.apply_to_panel(simd, scores, dsoftcap);
        }
        self.add_biases(simd, scores);
        if scores.seen.visibility == Visibility::Partial {
            self.hide_by_range(simd, scores);
            self.hide_single_keys(scores);
        }
    }

    /// As [`apply`](Self::apply), for a panel of one column, whose scores are side by side; there may be more scores than keys.
    ///
    /// Causality, window, first keys and key length are left to the caller, which computes no score outside their range.
    #[inline(always)]
    pub(crate) fn apply_to_query<S: Simd>(&self, simd: S, scores: &mut Scores<'_, R>) {
        if self.score_function.is_some() {
            self.apply_function(scores, &mut []);
        }
        if let Some(softcap) = self.softcap {
            for score in R::vectors_mut::<S>(scores.numbers) {
                *score = softcap.apply(simd, *score).0;
            }
            // The softcap has raised the −∞ after the last key.
            scores.numbers[scores.seen.keys.len()..].fill(R::NEG_INFINITY);
        }
        self.add_biases_to_query(scores);
        self.hide_single_keys(scores);
    }

    /// Whether segments, blocks, a bool tensor, a function, a bias or the gap between first keys and a window may hide some of `keys` from
    /// some of `queries`.
    pub(crate) fn may_hide_single_keys(&self, queries: &Queries, keys: &Range<usize>) -> bool {
        let mask = &self.options.mask;
        let by_mask = mask.segments.is_some()
            || mask.blocks.is_some()
            || mask.masked.is_some()
            || self.visible_function.is_some();
        by_mask || self.has_gap(queries, keys) || self.biases_may_hide(queries, keys)
    }

    /// Whether a query sees no key at all, so that its numbers must not spread.
    ///
    /// Without a sink the logsumexp tells. With a sink every key has to be checked, which is worth it only if the numbers of
    /// the row, or of its result, are not `finite`: otherwise its weights of zero make them zero.
    pub(crate) fn fully_masked(
        &self,
        at: [usize; 3],
        logsumexp: R,
        finite: impl FnOnce() -> bool,
    ) -> bool {
        let [batch_item, head, query] = at;
        if self.sink(head) == f64::NEG_INFINITY {
            return logsumexp == R::NEG_INFINITY;
        }
        let (mask, problem) = (&self.options.mask, &self.problem);
        let sees = |key| {
            mask.visible(problem, batch_item, head, query, key)
                && self.function_shows(at, key)
                && !self.biases_hide(at, key)
        };
        let (count, range) = mask.seen_keys(problem, batch_item, query);
        !finite() && !(0..count).chain(range).any(sees)
    }

    /// The factor on the scores.
    pub(crate) fn scale(&self) -> f64 {
        self.options.scale(&self.problem)
    }

    /// The sink of a head, as f64; −∞ if there is none.
    pub(crate) fn sink(&self, head: usize) -> f64 {
        let sinks = self.options.sinks;
        sinks.map_or(f64::NEG_INFINITY, |sinks| sinks[head].to_f64())
    }

    /// The factor on the weights that dropout keeps.
    pub(crate) fn kept_scale(&self) -> f64 {
        self.options
            .dropout
            .map_or(1.0, |dropout| dropout.kept_scale())
    }

    /// Writes 1 for the weights that are kept and 0 for those that are dropped, as rows of the panel's columns.
    #[inline(always)]
    pub(crate) fn drop_weights(&self, dropout: AttentionDropout, seen: &Seen, kept: &mut [R]) {
        let queries = seen.panel.queries;
        let mut states = [[0_u32; WIDEST_PANEL]; 2];
        let [of_a, of_b] = &mut states;
        for (query, (a, b)) in queries.range().zip(of_a.iter_mut().zip(of_b)) {
            let row = dropout.row(queries.batch_item, queries.head, query);
            [*a, *b] = row.state;
        }
        let threshold = dropout.threshold();
        let rows = kept.chunks_exact_mut(seen.panel.columns);
        for (row, key) in rows.zip(seen.keys.clone()) {
            // Eight at a time and of known length, so that the compiler uses vectors.
            let (of_a, of_b) = (states[0].chunks_exact(8), states[1].chunks_exact(8));
            for ((row, a), b) in row.chunks_mut(8).zip(of_a).zip(of_b) {
                let mut factors = [R::default(); 8];
                for lane in 0..8 {
                    let row = crate::AttentionDropoutRow {
                        state: [a[lane], b[lane]],
                        threshold,
                    };
                    factors[lane] = R::from_f64(f64::from(row.keep(key)));
                }
                row.copy_from_slice(&factors[..row.len()]);
            }
        }
    }
}
