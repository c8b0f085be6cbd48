//! The biases of scores: a dense one, and one that depends on the distance of a key.

use core::{f64::consts::LOG2_E, ops::Range};

use pulp::Simd;

use crate::{
    Broadcast,
    attention::kernel::{
        scores::Scoring,
        seen::{Scores, Seen},
        tile::{Queries, WIDEST_PANEL},
        transpose::transpose_eights,
    },
    simd::real::Real,
};

impl<R: Real> Scoring<'_, R> {
    /// Adds the biases to the scores of a panel.
    #[inline(always)]
    pub(crate) fn add_biases<S: Simd>(&self, simd: S, scores: &mut Scores<'_, R>) {
        if let Some(bias) = self.distance_bias {
            let Seen { panel, keys, .. } = scores.seen;
            let queries = panel.queries;
            let (entries, first) = self.distances(queries.batch_item, queries.first, keys.start);
            let head = &bias[queries.head * entries..][..entries];
            // Not `scores.rows()`, whose rows are cut to the panel's columns: the compiler does not vectorise those.
            let rows = scores.numbers.chunks_mut(scores.stride);
            for (row, skipped) in rows.zip(0..keys.len()) {
                let biases = &head[first - skipped..][..queries.count];
                for (score, &bias) in row.iter_mut().zip(biases) {
                    *score = plus_bias(*score, bias);
                }
            }
        }
        if let Some(bias) = &self.options.bias {
            add_dense(simd, bias, scores);
        }
    }

    /// Adds the biases to the scores of a panel of one column, which are side by side.
    #[inline(always)]
    pub(crate) fn add_biases_to_query(&self, scores: &mut Scores<'_, R>) {
        let Seen { panel, keys, .. } = scores.seen;
        let (queries, numbers) = (&panel.queries, &mut scores.numbers[..keys.len()]);
        if let Some(bias) = self.distance_bias {
            let (entries, first) = self.distances(queries.batch_item, queries.first, keys.start);
            let biases = &bias[queries.head * entries..][first + 1 - keys.len()..=first];
            for (score, &bias) in numbers.iter_mut().zip(biases.iter().rev()) {
                *score = plus_bias(*score, bias);
            }
        }
        if let Some(bias) = &self.options.bias {
            let stride = bias.strides()[3];
            let biases =
                &bias.data()[bias.index(queries.batch_item, queries.head, 0, keys.start)..];
            for (index, score) in numbers.iter_mut().enumerate() {
                *score = plus_bias(*score, biases[index * stride]);
            }
        }
    }

    /// Whether a bias may be −∞ for some of these queries and keys. A dense bias is not searched, and counts as one that may be.
    pub(crate) fn biases_may_hide(&self, queries: &Queries, keys: &Range<usize>) -> bool {
        self.options.bias.is_some()
            || self.distance_bias.is_some_and(|bias| {
                let (entries, first) =
                    self.distances(queries.batch_item, queries.first, keys.start);
                let first = queries.head * entries + first;
                bias[first + 1 - keys.len()..first + queries.count].contains(&R::NEG_INFINITY)
            })
    }

    /// Whether a bias is −∞ for a query and a key.
    pub(crate) fn biases_hide(&self, [batch_item, head, query]: [usize; 3], key: usize) -> bool {
        let hides = |bias: R| bias == R::NEG_INFINITY;
        let dense = self.options.bias;
        let dense = dense.map(|bias| bias.get(batch_item, head, query, key));
        let distance = self.distance_bias.map(|bias| {
            let (entries, entry) = self.distances(batch_item, query, key);
            bias[head * entries + entry]
        });
        dense.is_some_and(hides) || distance.is_some_and(hides)
    }
}

/// `score + log2(e) · bias`, and −∞ where the bias is −∞, even if the score is NaN.
#[inline(always)]
fn plus_bias<R: Real>(score: R, bias: R) -> R {
    if bias == R::NEG_INFINITY {
        return bias;
    }
    // `f32::MIN` is a common additive mask. Times log2(e) it would overflow to −∞ and hide the key: the clamp keeps it finite.
    let (bias, least) = (bias * R::from_f64(LOG2_E), R::default() - R::MAX);
    let bias = if bias < least { least } else { bias };
    score + if bias > R::MAX { R::MAX } else { bias }
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

/// Adds a dense bias, which has one row per query, to scores that have one row per key.
#[inline(always)]
fn add_dense<R: Real, S: Simd>(simd: S, bias: &Broadcast<'_, R>, scores: &mut Scores<'_, R>) {
    let Seen { panel, keys, .. } = scores.seen;
    let queries = panel.queries;
    let [_, _, of_queries, of_keys] = bias.strides();
    let first = bias.index(queries.batch_item, queries.head, queries.first, keys.start);
    let first = &bias.data()[first..];
    if of_queries == 0 {
        for (key, row) in scores.rows().enumerate() {
            let bias = R::splat(simd, first[key * of_keys]);
            for score in R::vectors_mut::<S>(row) {
                *score = plus_bias_vector::<R, S>(simd, *score, bias);
            }
        }
        return;
    }
    // Four keys at a time: four numbers of each query's row become a column of four rows of scores.
    let mut columns = [[R::default(); WIDEST_PANEL]; 4];
    let stride = scores.stride;
    let quads = scores.numbers.chunks_mut(4 * stride);
    for (quad, scores) in quads.take(keys.len().div_ceil(4)).enumerate() {
        let first = &first[4 * quad * of_keys..];
        let count = (keys.len() - 4 * quad).min(4);
        let mut done = 0;
        while of_keys == 1 && count == 4 && done + 8 <= queries.count {
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
        for query in done..queries.count {
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
