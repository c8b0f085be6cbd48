//! What happens to the scores of one panel and one block of keys: softcap, biases, dropout, and when the mask.
//!
//! Scores are in units of log 2 here: the query was multiplied by `scale · log2(e)`, so that the softmax is one of
//! powers of two.

use core::{f64::consts::LOG2_E, ops::Range};

use pulp::Simd;

use super::{
    Element, Inputs,
    real::Real,
    tile::{Panel, WIDEST_PANEL},
    transpose::transpose_eights,
    visibility::Visibility,
};
use crate::{Broadcast, DistanceAxis, Dropout, Mask, Problem};

/// The options that act on scores.
#[derive(Clone, Copy)]
pub(super) struct Scoring<'a, R> {
    pub(super) problem: Problem,
    pub(super) mask: Mask<'a>,
    pub(super) bias: Option<Broadcast<'a, R>>,
    pub(super) distance_bias: Option<&'a [R]>,
    pub(super) softcap: Option<f64>,
    pub(super) dropout: Option<Dropout>,
}

/// The scores of a panel and a block.
pub(super) struct Scores<'a, R> {
    /// One row per key, `stride` numbers apart.
    pub(super) rows: &'a mut [R],
    pub(super) stride: usize,
    /// Gets the derivative of the softcap, in rows of the panel's columns; may be empty.
    pub(super) slopes: &'a mut [R],
}

impl<'a, R: Real> Scoring<'a, R> {
    pub(super) fn new<T: Element<Real = R>>(inputs: &Inputs<'a, T>) -> Self {
        Self {
            problem: inputs.problem,
            mask: inputs.mask,
            bias: inputs.bias,
            distance_bias: inputs.distance_bias,
            softcap: inputs.softcap,
            dropout: inputs.dropout,
        }
    }

    /// Softcap, biases and mask, in the order of the contract.
    #[inline(always)]
    pub(super) fn apply<S: Simd>(
        &self,
        simd: S,
        panel: &Panel,
        keys: Range<usize>,
        visibility: Visibility,
        scores: Scores<'_, R>,
    ) {
        let Scores {
            rows: scores,
            stride,
            slopes,
        } = scores;
        if let Some(softcap) = self.softcap {
            squash::<R, S>(simd, panel, softcap, scores, stride, slopes);
        }
        if let Some(distance_bias) = self.distance_bias {
            self.add_distance_bias(distance_bias, panel, &keys, scores, stride);
        }
        if let Some(bias) = &self.bias {
            add_bias(simd, bias, panel, &keys, scores, stride);
        }
        if visibility == Visibility::Partial {
            self.hide::<S>(simd, panel, &keys, scores, stride);
        }
    }

    /// As [`apply`](Self::apply), for a single query whose scores stand side by side; `scores` may be longer than `keys`.
    ///
    /// Causality, window and key length are left to the caller, who computes no score outside their range.
    #[inline(always)]
    pub(super) fn apply_to_query<S: Simd>(
        &self,
        simd: S,
        batch_item: usize,
        head: usize,
        keys: Range<usize>,
        scores: &mut [R],
    ) {
        if let Some(softcap) = self.softcap {
            let cap = R::splat(simd, R::from_f64(softcap * LOG2_E));
            let inverse = R::splat(simd, R::from_f64(1.0 / (softcap * LOG2_E)));
            for score in R::vectors_mut::<S>(scores) {
                *score = R::times(simd, R::tanh(simd, R::times(simd, *score, inverse)), cap);
            }
            // The cap has lifted what stood for nothing.
            scores[keys.len()..].fill(R::NEG_INFINITY);
        }
        let axis = DistanceAxis::new(&self.problem, &self.mask);
        let position = self.mask.position(&self.problem, batch_item, 0);
        for (score, key) in scores.iter_mut().zip(keys) {
            if let Some(bias) = self.distance_bias {
                let entry = head * axis.len() + axis.index(position, key);
                *score = plus_bias(*score, bias[entry]);
            }
            if let Some(bias) = &self.bias {
                *score = plus_bias(*score, bias.get(batch_item, head, 0, key));
            }
            if self.hides_in_range(batch_item, head, key) {
                *score = R::NEG_INFINITY;
            }
        }
    }

    fn add_distance_bias(
        &self,
        bias: &[R],
        panel: &Panel,
        keys: &Range<usize>,
        scores: &mut [R],
        stride: usize,
    ) {
        let (entries, first) = self.distances(panel, keys);
        let head = &bias[panel.head * entries..][..entries];
        for (row, skipped) in scores.chunks_mut(stride).zip(0..keys.len()) {
            let biases = &head[first - skipped..][..panel.queries];
            for (score, &bias) in row.iter_mut().zip(biases) {
                *score = plus_bias(*score, bias);
            }
        }
    }

    /// Entries of a distance bias per head, and which of them serves the first query of a panel and the first of these keys;
    /// the next query has the next entry, the next key the one before.
    pub(super) fn distances(&self, panel: &Panel, keys: &Range<usize>) -> (usize, usize) {
        let axis = DistanceAxis::new(&self.problem, &self.mask);
        let position = self
            .mask
            .position(&self.problem, panel.batch_item, panel.query);
        (axis.len(), axis.index(position, keys.start))
    }

    /// Multiplies rows of numbers by 1 where the weight is kept and by 0 where it is dropped.
    #[inline(always)]
    pub(super) fn drop_weights(
        &self,
        dropout: Dropout,
        panel: &Panel,
        keys: Range<usize>,
        kept: &mut [R],
    ) {
        let mut states = [[0_u32; WIDEST_PANEL]; 2];
        let [of_a, of_b] = &mut states;
        for (query, (a, b)) in of_a.iter_mut().zip(of_b).enumerate().take(panel.queries) {
            let row = dropout.row(panel.batch_item, panel.head, panel.query + query);
            [*a, *b] = row.state;
        }
        let threshold = dropout.threshold();
        for (row, key) in kept.chunks_exact_mut(panel.columns).zip(keys) {
            // Eight at a time and of known length, so that the compiler uses vectors.
            let (of_a, of_b) = (states[0].chunks_exact(8), states[1].chunks_exact(8));
            for ((row, a), b) in row.chunks_mut(8).zip(of_a).zip(of_b) {
                let mut factors = [R::default(); 8];
                for lane in 0..8 {
                    let row = crate::DropoutRow {
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

/// `score + log2(e) · bias`, −∞ where the bias is, also for a NaN.
#[inline(always)]
fn plus_bias<R: Real>(score: R, bias: R) -> R {
    if bias == R::NEG_INFINITY {
        return bias;
    }
    // The lowest number is a popular mask. Times log2(e) it would be −∞, and hide where it only says "least of all".
    let (bias, least) = (bias * R::from_f64(LOG2_E), R::default() - R::MAX);
    let bias = if bias < least { least } else { bias };
    score + if bias > R::MAX { R::MAX } else { bias }
}

/// `softcap · tanh(score / softcap)` and its derivative.
#[inline(always)]
fn squash<R: Real, S: Simd>(
    simd: S,
    panel: &Panel,
    softcap: f64,
    scores: &mut [R],
    stride: usize,
    slopes: &mut [R],
) {
    let cap = R::splat(simd, R::from_f64(softcap * LOG2_E));
    let inverse = R::splat(simd, R::from_f64(1.0 / (softcap * LOG2_E)));
    let one = R::splat(simd, R::from_f64(1.0));
    let zero = R::splat(simd, R::default());
    let negative = R::splat(simd, R::from_f64(-1.0));
    let keep_slopes = !slopes.is_empty();
    for (key, row) in scores.chunks_mut(stride).enumerate() {
        for (vector, score) in R::vectors_mut::<S>(&mut row[..panel.columns])
            .iter_mut()
            .enumerate()
        {
            let tanh = R::tanh(simd, R::times(simd, *score, inverse));
            *score = R::times(simd, tanh, cap);
            if keep_slopes {
                let slopes =
                    R::vectors_mut::<S>(&mut slopes[key * panel.columns..][..panel.columns]);
                let slope = R::mul_add(simd, R::minus(simd, zero, tanh), tanh, one);
                // The score of a hidden key may be NaN. That of a visible one is NaN without its slope.
                slopes[vector] = R::select_less(simd, negative, slope, slope, zero);
            }
        }
    }
}

/// Adds a dense bias, whose rows are those of the queries while the scores' are those of the keys.
#[inline(always)]
fn add_bias<R: Real, S: Simd>(
    simd: S,
    bias: &Broadcast<'_, R>,
    panel: &Panel,
    keys: &Range<usize>,
    scores: &mut [R],
    stride: usize,
) {
    let [_, _, of_queries, of_keys] = bias.strides();
    let first = &bias.data()[bias.index(panel.batch_item, panel.head, panel.query, keys.start)..];
    if of_queries == 0 {
        for (key, row) in scores.chunks_mut(stride).take(keys.len()).enumerate() {
            let bias = R::splat(simd, first[key * of_keys]);
            for score in R::vectors_mut::<S>(&mut row[..panel.columns]) {
                *score = plus_bias_vector::<R, S>(simd, *score, bias);
            }
        }
        return;
    }
    // Four keys at a time: four numbers of each query's row become a column of four rows of scores.
    let mut columns = [[R::default(); WIDEST_PANEL]; 4];
    for (quad, scores) in scores
        .chunks_mut(4 * stride)
        .take(keys.len().div_ceil(4))
        .enumerate()
    {
        let first = &first[4 * quad * of_keys..];
        let count = (keys.len() - 4 * quad).min(4);
        let mut done = 0;
        while of_keys == 1 && count == 4 && done + 8 <= panel.queries {
            let mut rows = [[R::default(); 4]; 8];
            for (query, row) in rows.iter_mut().enumerate() {
                row.copy_from_slice(&first[(done + query) * of_queries..][..4]);
            }
            let rows = transpose_eights::<S, R>(simd, &rows);
            for (column, row) in columns.iter_mut().zip(&rows) {
                column[done..done + 8].copy_from_slice(row);
            }
            done += 8;
        }
        for query in done..panel.queries {
            for (key, column) in columns.iter_mut().enumerate().take(count) {
                column[query] = first[query * of_queries + key * of_keys];
            }
        }
        for (row, column) in scores.chunks_mut(stride).zip(&columns).take(count) {
            let row = R::vectors_mut::<S>(&mut row[..panel.columns]);
            for (score, &bias) in row.iter_mut().zip(R::vectors::<S>(column)) {
                *score = plus_bias_vector::<R, S>(simd, *score, bias);
            }
        }
    }
}

/// As [`plus_bias`], for a vector.
#[inline(always)]
fn plus_bias_vector<R: Real, S: Simd>(
    simd: S,
    score: R::Vector<S>,
    bias: R::Vector<S>,
) -> R::Vector<S> {
    let (least, most) = (
        R::splat(simd, R::default() - R::MAX),
        R::splat(simd, R::MAX),
    );
    let scaled = R::times(simd, bias, R::splat(simd, R::from_f64(LOG2_E)));
    let sum = R::plus(simd, score, R::bound(simd, scaled, least, most));
    R::select_less(simd, bias, least, R::splat(simd, R::NEG_INFINITY), sum)
}
