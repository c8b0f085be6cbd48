//! The softcap of scores, which are in units of log 2.

use core::f64::consts::LOG2_E;

use pulp::Simd;

use crate::{attention::kernel::seen::Scores, math, simd::real::Real};

/// `softcap · tanh(score / softcap)`
#[derive(Clone, Copy)]
pub(crate) struct Softcap<R> {
    cap: R,
    inverse: R,
    /// Whether both are square roots, to be applied twice: the precision may hold neither the softcap nor its inverse.
    roots: bool,
}

impl<R: Real> Softcap<R> {
    pub(crate) fn new(softcap: f64) -> Self {
        const LARGEST: f64 = (1_u64 << 60) as f64;
        let roots = !(1.0 / LARGEST..=LARGEST).contains(&softcap);
        let cap = if roots {
            // A softcap beyond the square of the range caps no score within it.
            let least = R::MIN_POSITIVE.to_f64();
            (math::sqrt(softcap) * math::sqrt(LOG2_E)).clamp(least, 1.0 / least)
        } else {
            softcap * LOG2_E
        };
        Self {
            cap: R::from_f64(cap),
            inverse: R::from_f64(1.0 / cap),
            roots,
        }
    }

    /// The capped score, and the ratio of the uncapped score to the softcap.
    #[inline(always)]
    pub(crate) fn apply<S: Simd>(
        self,
        simd: S,
        score: R::Vector<S>,
    ) -> (R::Vector<S>, R::Vector<S>) {
        let (cap, inverse) = (R::splat(simd, self.cap), R::splat(simd, self.inverse));
        let argument = R::times(simd, score, inverse);
        if !self.roots {
            let tanh = R::tanh(simd, argument);
            return (R::times(simd, tanh, cap), argument);
        }
        let argument = R::times(simd, argument, inverse);
        let tanh = R::tanh(simd, argument);
        let capped = R::times(simd, R::times(simd, tanh, cap), cap);
        // A score far below the softcap is itself. Its ratio to the softcap may be subnormal, or 0.
        let square = R::times(simd, argument, argument);
        let epsilon = R::splat(simd, R::EPSILON);
        (
            R::select_less(simd, square, epsilon, score, capped),
            argument,
        )
    }

    /// The derivative of the capped score, `1 − tanh²(ratio)`, as `4e / (1 + e)²` with `e = exp(−2 · |ratio|)`: the difference
    /// would cancel where the tanh is near 1.
    #[inline(always)]
    fn derivative<S: Simd>(simd: S, ratio: R::Vector<S>) -> R::Vector<S> {
        let zero = R::splat(simd, R::default());
        let magnitude = R::select_less(simd, ratio, zero, R::minus(simd, zero, ratio), ratio);
        let factor = R::splat(simd, R::from_f64(-2.0 * LOG2_E));
        let e = R::exp2_of_negative(simd, R::times(simd, magnitude, factor));
        let sum = R::plus(simd, R::splat(simd, R::from_f64(1.0)), e);
        let four = R::splat(simd, R::from_f64(4.0));
        R::over(simd, R::times(simd, four, e), R::times(simd, sum, sum))
    }

    /// Caps the scores of a panel. `dsoftcap` gets the derivatives, in rows of the panel's columns; it may be empty.
    #[inline(always)]
    pub(crate) fn apply_to_panel<S: Simd>(
        self,
        simd: S,
        scores: &mut Scores<'_, R>,
        dsoftcap: &mut [R],
    ) {
        let columns = scores.seen.panel.columns;
        let zero = R::splat(simd, R::default());
        let negative = R::splat(simd, R::from_f64(-1.0));
        let keep_dsoftcap = !dsoftcap.is_empty();
        for (key, row) in scores.rows().enumerate() {
            for (vector, score) in R::vectors_mut::<S>(row).iter_mut().enumerate() {
                let (capped, ratio) = self.apply(simd, *score);
                *score = capped;
                if keep_dsoftcap {
                    let dsoftcap = R::vectors_mut::<S>(&mut dsoftcap[key * columns..][..columns]);
                    let derivative = Self::derivative(simd, ratio);
                    // The score of a hidden key may be NaN. A visible NaN reaches the gradients through the weight.
                    dsoftcap[vector] = R::select_less(simd, negative, derivative, derivative, zero);
                }
            }
        }
    }
}
