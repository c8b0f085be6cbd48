//! The online softmax: weights relative to the largest score so far.

use pulp::Simd;

use super::real::Real;
use crate::math;

/// Turns scores into weights relative to the largest score so far, and brings maximum and sum up to date.
#[inline(always)]
pub(super) fn weigh<S: Simd, R: Real, const VECTORS: usize>(
    simd: S,
    scores: &mut [R],
    maximum: &mut [R],
    sum: &mut [R],
    shrink: &mut [R],
) {
    let scores = R::vectors_mut::<S>(scores);
    let maximum = R::vectors_mut::<S>(maximum);
    let sum = R::vectors_mut::<S>(sum);
    let shrink = R::vectors_mut::<S>(shrink);
    let zero = R::splat(simd, R::default());
    let (most, least) = (
        R::splat(simd, R::MAX),
        R::splat(simd, R::default() - R::MAX),
    );

    let mut largest = [zero; VECTORS];
    largest.copy_from_slice(&maximum[..VECTORS]);
    for row in scores.chunks_exact(VECTORS) {
        for (largest, &score) in largest.iter_mut().zip(row) {
            *largest = R::max(simd, *largest, score);
        }
    }
    let mut reference = [zero; VECTORS];
    for vector in 0..VECTORS {
        // A score that overflowed to +∞ counts as the largest number: ∞ − ∞ would be NaN. A row that has seen nothing
        // is measured from a finite number for the same reason.
        let new = R::select_less(simd, most, largest[vector], most, largest[vector]);
        reference[vector] = R::max(simd, new, least);
        shrink[vector] =
            R::exp2_of_negative(simd, R::minus(simd, maximum[vector], reference[vector]));
        maximum[vector] = new;
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
        sum[vector] = R::mul_add(simd, sum[vector], shrink[vector], sums[vector]);
    }
}

/// Turns scores into weights relative to the largest score so far; `part` is that score, the sum of the weights, and the
/// weighted values.
#[inline(always)]
pub(super) fn weigh_query<S: Simd, R: Real>(simd: S, scores: &mut [R], part: &mut [R]) {
    let largest = scores.iter().fold(
        part[0],
        |largest, &score| if score > largest { score } else { largest },
    );
    // As in the forward pass of many queries: infinity minus infinity would be NaN.
    let largest = if largest > R::MAX { R::MAX } else { largest };
    let least = R::default() - R::MAX;
    let reference = if largest > least { largest } else { least };
    let shrink = R::from_f64(math::exp2((part[0] - reference).to_f64()));
    part[0] = largest;
    for sum in &mut part[1..] {
        *sum = *sum * shrink;
    }
    let reference = R::splat(simd, reference);
    let mut sum = R::splat(simd, R::default());
    for score in R::vectors_mut::<S>(scores) {
        *score = R::exp2_of_negative(simd, R::minus(simd, *score, reference));
        sum = R::plus(simd, sum, *score);
    }
    part[1] = part[1] + R::reduce_sum(simd, sum);
}
