//! Weights and gradients of scores, recomputed in the backward pass.

use pulp::Simd;

use crate::{attention::kernel::seen::Scores, simd::real::Real};

/// Turns scores into weights, and the gradients of weights into those of scores.
///
/// The statistics of the columns are the logsumexp · log2(e), +∞ for fully masked rows, which makes their weights 0; and −delta: the gradient of
/// the logsumexp minus the dot product of output and output gradient (FlashAttention-2's D).
#[inline(always)]
pub(crate) fn weigh<S: Simd, R: Real, const DROPOUT: bool>(
    simd: S,
    weights: &mut Scores<'_, R>,
    gradients: &mut Scores<'_, R>,
    kept: &[R],
    statistics: [&[R]; 2],
) {
    let columns = statistics[0].len();
    let [logsumexp, neg_delta] = statistics.map(|numbers| R::vectors::<S>(numbers));
    let rows = weights.rows().zip(gradients.rows());
    for (row, (weights, gradients)) in rows.enumerate() {
        let weights = R::vectors_mut::<S>(weights);
        let gradients = R::vectors_mut::<S>(gradients);
        let kept = if DROPOUT {
            &kept[row * columns..][..columns]
        } else {
            &[]
        };
        let kept = R::vectors::<S>(kept);
        for (vector, (weight, gradient)) in weights.iter_mut().zip(gradients).enumerate() {
            let exponent = R::minus(simd, *weight, logsumexp[vector]);
            let undropped = R::exp2_of_negative(simd, exponent);
            let shift = neg_delta[vector];
            let (inner, dropped) = if DROPOUT {
                (
                    R::mul_add(simd, *gradient, kept[vector], shift),
                    R::times(simd, undropped, kept[vector]),
                )
            } else {
                (R::plus(simd, *gradient, shift), undropped)
            };
            *gradient = weighted::<R, S>(simd, undropped, inner);
            *weight = dropped;
        }
    }
}

/// `weight · x`, and 0 where the weight is 0, whatever `x` is: the gradient of a hidden pair may have overflowed. A NaN in the weight stays.
#[inline(always)]
fn weighted<R: Real, S: Simd>(simd: S, weight: R::Vector<S>, x: R::Vector<S>) -> R::Vector<S> {
    let zero = R::splat(simd, R::default());
    R::select_less(simd, zero, weight, R::times(simd, weight, x), weight)
}
