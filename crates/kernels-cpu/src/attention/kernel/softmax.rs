//! The online softmax: weights relative to the largest score so far, and sums that are rescaled when it grows.

use core::f64::consts::{LN_2, LOG2_E};

use pulp::Simd;

use crate::{
    math,
    simd::real::{MAX_LANES, Real},
};

/// How the next scores change the running maximum, one row in each lane.
struct Raised<V> {
    /// The largest score so far.
    maximum: V,
    /// The score that the new weights are relative to.
    reference: V,
    /// The factor of the sums so far.
    rescale: V,
}

/// `before` is the largest score so far, `largest` the largest including the new scores.
#[inline(always)]
fn raise<S: Simd, R: Real>(
    simd: S,
    before: R::Vector<S>,
    largest: R::Vector<S>,
) -> Raised<R::Vector<S>> {
    let (most, least) = (
        R::splat(simd, R::MAX),
        R::splat(simd, R::default() - R::MAX),
    );
    // The maximum and the reference are clamped to ±MAX, so that `score − reference` is never ∞ − ∞: not for a score that overflowed
    // to +∞, nor for a row that is fully masked so far.
    let maximum = R::select_less(simd, most, largest, most, largest);
    let reference = R::max(simd, maximum, least);
    Raised {
        maximum,
        reference,
        rescale: R::exp2_of_negative(simd, R::minus(simd, before, reference)),
    }
}

/// Turns the scores of a panel into weights relative to the largest score so far, and brings maximum and sum up to date.
///
/// The panel is as wide as `maximum`: one or two vectors.
#[inline(always)]
pub(crate) fn online_softmax<S: Simd, R: Real>(
    simd: S,
    scores: &mut [R],
    maximum: &mut [R],
    sum: &mut [R],
    rescale: &mut [R],
) {
    if maximum.len() == R::lanes::<S>() {
        of_vectors::<S, R, 1>(simd, scores, maximum, sum, rescale);
    } else {
        of_vectors::<S, R, 2>(simd, scores, maximum, sum, rescale);
    }
}

#[inline(always)]
fn of_vectors<S: Simd, R: Real, const VECTORS: usize>(
    simd: S,
    scores: &mut [R],
    maximum: &mut [R],
    sum: &mut [R],
    rescale: &mut [R],
) {
    let scores = R::vectors_mut::<S>(scores);
    let maximum = R::vectors_mut::<S>(maximum);
    let sum = R::vectors_mut::<S>(sum);
    let rescale = R::vectors_mut::<S>(rescale);
    let zero = R::splat(simd, R::default());
    let mut largest = [zero; VECTORS];
    largest.copy_from_slice(&maximum[..VECTORS]);
    for row in scores.chunks_exact(VECTORS) {
        for (largest, &score) in largest.iter_mut().zip(row) {
            *largest = R::max(simd, *largest, score);
        }
    }
    let mut reference = [zero; VECTORS];
    for vector in 0..VECTORS {
        let raised = raise::<S, R>(simd, maximum[vector], largest[vector]);
        reference[vector] = raised.reference;
        rescale[vector] = raised.rescale;
        maximum[vector] = raised.maximum;
    }
    let mut sums = [zero; VECTORS];
    for row in scores.chunks_exact_mut(VECTORS) {
        for vector in 0..VECTORS {
            let weight = R::exp2_of_negative(simd, R::minus(simd, row[vector], reference[vector]));
            row[vector] = weight;
            sums[vector] = R::plus(simd, sums[vector], weight);
        }
    }
    for vector in 0..VECTORS {
        sum[vector] = R::mul_add(simd, sum[vector], rescale[vector], sums[vector]);
    }
}

/// As [`online_softmax`], for one row whose scores are side by side and fill whole vectors. Rescales `values`, its weighted values.
#[inline(always)]
pub(crate) fn online_softmax_row<S: Simd, R: Real>(
    simd: S,
    scores: &mut [R],
    maximum: &mut R,
    sum: &mut R,
    values: &mut [R],
) {
    let scores = R::vectors_mut::<S>(scores);
    let before = R::splat(simd, *maximum);
    let mut largest = before;
    for &score in &*scores {
        largest = R::max(simd, largest, score);
    }
    let largest = lanes::<S, R>(largest)[..R::lanes::<S>()]
        .iter()
        .fold(*maximum, |most, &x| if x > most { x } else { most });
    let raised = raise::<S, R>(simd, before, R::splat(simd, largest));
    for values in R::vectors_mut::<S>(values) {
        *values = R::times(simd, *values, raised.rescale);
    }
    let mut added = R::splat(simd, R::default());
    for score in scores {
        *score = R::exp2_of_negative(simd, R::minus(simd, *score, raised.reference));
        added = R::plus(simd, added, *score);
    }
    *maximum = lanes::<S, R>(raised.maximum)[0];
    *sum = *sum * lanes::<S, R>(raised.rescale)[0] + R::reduce_sum(simd, added);
}

/// The logsumexp of a row, and the factor by which its weighted values become its output.
///
/// `maximum` is its largest score in units of log 2, `sum` the sum of the weights relative to it. The sink, which is −∞ if there is none,
/// is added last and not in units of log 2: the precision of the kernels, even f64, may not hold the sink times log2(e).
pub(crate) fn finish(maximum: f64, sum: f64, sink: f64) -> (f64, f64) {
    // The sum is 0 only if no key was visible; a NaN is not 0.
    if sum == 0.0 {
        return (sink, 0.0);
    }
    if sink == f64::NEG_INFINITY {
        return (maximum * LN_2 + math::ln(sum), 1.0 / sum);
    }
    let sink_in_units = f64::saturated(sink * LOG2_E);
    let (reference, logsumexp) = if sink_in_units > maximum {
        (sink_in_units, sink)
    } else {
        (maximum, maximum * LN_2)
    };
    let of_keys = math::exp2(maximum - reference);
    let total = sum * of_keys + math::exp2(sink_in_units - reference);
    (logsumexp + math::ln(total), of_keys / total)
}

/// The numbers of a vector, in the first places.
#[inline(always)]
fn lanes<S: Simd, R: Real>(vector: R::Vector<S>) -> [R; MAX_LANES] {
    let mut lanes = [R::default(); MAX_LANES];
    R::vectors_mut::<S>(&mut lanes)[0] = vector;
    lanes
}
