//! Score functions.

use core::{
    f64::consts::{LN_2, LOG2_E},
    fmt::{Debug, Formatter, Result},
};

use pulp::{Simd, WithSimd};

use crate::{
    Broadcast,
    attention::function::{
        lines::{CHUNK, Lines, Looped, MOST_CAPTURED, Pair, Place, padded},
        number::Number,
    },
    threads::parallel::widest,
};

/// A function from the scaled score of a pair to its score, before the softcap, with its derivatives: for f32 and f64, and `N` captured
/// numbers of each pair.
///
/// ```
/// use burn_attn_kernels_cpu::tiled::{Number, Pair, ScoreForm};
///
/// /// A penalty that grows with the distance, with one slope per head.
/// struct Penalty;
///
/// impl ScoreForm<1> for Penalty {
///     fn score<R: Number>(&self, score: R, pair: Pair, [slope]: [R; 1]) -> R {
///         score - slope * R::from_i32(pair.distance().abs())
///     }
///
///     fn derivatives<R: Number>(&self, _: R, pair: Pair, _: [R; 1]) -> (R, [R; 1]) {
///         (R::constant(1.0), [-R::from_i32(pair.distance().abs())])
///     }
/// }
/// ```
///
/// PyTorch equivalent: a `score_mod` of `flex_attention`, which has no derivative on CPUs.
pub trait ScoreForm<const N: usize>: Send + Sync + 'static {
    /// The score of a pair.
    fn score<R: Number>(&self, score: R, pair: Pair, captured: [R; N]) -> R;

    /// The derivatives of [`score`](Self::score) with respect to the score and to each captured number.
    fn derivatives<R: Number>(&self, score: R, pair: Pair, captured: [R; N]) -> (R, [R; N]);
}

/// The loops around a [`ScoreForm`], in both precisions.
pub trait ScoreForms: ScoreLoops<f32> + ScoreLoops<f64> {
    /// How many numbers the function reads.
    fn captured(&self) -> usize;
}

/// The loops around a [`ScoreForm`], in the units of the kernels: scores times log2(e).
pub trait ScoreLoops<R>: Send + Sync {
    /// Applies the function to the scores. `captured` has the numbers that the function reads.
    fn apply(&self, lines: Lines, scores: &mut [R], captured: &[(&[R], Place)]);

    /// Turns the gradients of the results into the gradients of `scores`, and adds those of the captured numbers to `sums`. The lines of `scores`
    /// follow each other without a gap.
    fn gradients(
        &self,
        lines: Lines,
        scores: &[R],
        gradients: &mut [R],
        captured: &[(&[R], Place)],
        sums: &mut [(&mut [R], Place)],
    );
}

/// A score function in one call.
#[derive(Clone, Copy)]
pub struct ScoreFunction<'a, R> {
    /// The function.
    pub form: &'a dyn ScoreForms,
    /// One tensor for each number that the function reads.
    pub captured: &'a [Captured<'a, R>],
}

/// What a score function has captured.
#[derive(Clone, Copy, Debug)]
pub enum Captured<'a, R> {
    /// A tensor that broadcasts to the scores and does not vary along both queries and keys.
    Pairs(Broadcast<'a, R>),
    /// A tensor in the shape of a distance bias.
    Distances(&'a [R]),
}

impl<R: Debug> Debug for ScoreFunction<'_, R> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("ScoreFunction")
            .field("captured", &self.captured)
            .finish_non_exhaustive()
    }
}

impl<F: ScoreForm<N>, const N: usize> ScoreForms for Looped<F, N> {
    fn captured(&self) -> usize {
        const {
            assert!(
                N <= MOST_CAPTURED,
                "a score form reads at most 6 captured tensors"
            )
        };
        N
    }
}

impl<R: Number, F: ScoreForm<N>, const N: usize> ScoreLoops<R> for Looped<F, N> {
    fn apply(&self, lines: Lines, scores: &mut [R], captured: &[(&[R], Place)]) {
        widest(Apply {
            form: &self.0,
            lines,
            scores,
            captured: core::array::from_fn(|index| captured[index]),
        });
    }

    fn gradients(
        &self,
        lines: Lines,
        scores: &[R],
        gradients: &mut [R],
        captured: &[(&[R], Place)],
        sums: &mut [(&mut [R], Place)],
    ) {
        widest(Gradients {
            form: &self.0,
            lines,
            scores,
            gradients,
            captured: core::array::from_fn(|index| captured[index]),
            sums,
        });
    }
}

struct Apply<'a, R, F, const N: usize> {
    form: &'a F,
    lines: Lines,
    scores: &'a mut [R],
    captured: [(&'a [R], Place); N],
}

impl<R: Number, F: ScoreForm<N>, const N: usize> WithSimd for Apply<'_, R, F, N> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let (ln_2, log2_e) = (R::from_f64(LN_2), R::from_f64(LOG2_E));
        for chunk @ (line, first, count) in self.lines.chunks() {
            let captured = self.captured.map(|(data, place)| place.read(data, chunk));
            let start = line * self.lines.stride + first;
            let scores = &mut self.scores[start..start + count];
            let mut numbers = padded(scores);
            for (lane, number) in numbers.iter_mut().enumerate() {
                let pair = self.lines.pair_of_chunk(chunk, lane);
                let captured = core::array::from_fn(|index| captured[index][lane]);
                *number = self.form.score(*number * ln_2, pair, captured) * log2_e;
            }
            scores.copy_from_slice(&numbers[..count]);
        }
    }
}

struct Gradients<'a, 'b, R, F, const N: usize> {
    form: &'a F,
    lines: Lines,
    scores: &'a [R],
    gradients: &'a mut [R],
    captured: [(&'a [R], Place); N],
    sums: &'a mut [(&'b mut [R], Place)],
}

impl<R: Number, F: ScoreForm<N>, const N: usize> WithSimd for Gradients<'_, '_, R, F, N> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let (ln_2, zero) = (R::from_f64(LN_2), R::default());
        for chunk @ (line, first, count) in self.lines.chunks() {
            let captured = self.captured.map(|(data, place)| place.read(data, chunk));
            let start = line * self.lines.stride + first;
            let gradients = &mut self.gradients[start..start + count];
            let mut of_scores = [zero; CHUNK];
            of_scores[..count].copy_from_slice(gradients);
            let start = line * self.lines.len + first;
            let scores = padded(&self.scores[start..start + count]);
            let mut of_captured = [[zero; CHUNK]; N];
            for lane in 0..CHUNK {
                let pair = self.lines.pair_of_chunk(chunk, lane);
                let captured = core::array::from_fn(|index| captured[index][lane]);
                let gradient = of_scores[lane];
                let (by_score, by_captured) =
                    self.form.derivatives(scores[lane] * ln_2, pair, captured);
                // Selected, not multiplied: where a pair is hidden or has a weight of 0, the derivative may be NaN.
                let select = |product| if gradient == zero { zero } else { product };
                of_scores[lane] = select(gradient * by_score);
                for (sums, by) in of_captured.iter_mut().zip(by_captured) {
                    sums[lane] = select(gradient * by);
                }
            }
            gradients.copy_from_slice(&of_scores[..count]);
            for ((sums, place), terms) in self.sums.iter_mut().zip(&of_captured) {
                place.add(sums, chunk, terms);
            }
        }
    }
}

impl Place {
    /// Adds a chunk of a line, in which numbers after the `count` are 0.
    #[inline(always)]
    fn add<R: Number>(
        self,
        sums: &mut [R],
        (line, first, count): (usize, usize, usize),
        terms: &[R; CHUNK],
    ) {
        let start = self.at(line, first);
        match self.of_index {
            0 => {
                // A pairwise sum, which the compiler vectorises.
                let mut halves = *terms;
                let mut len = CHUNK;
                while len > 1 {
                    len /= 2;
                    for lane in 0..len {
                        halves[lane] = halves[lane] + halves[lane + len];
                    }
                }
                sums[start] = sums[start] + halves[0];
            }
            step => {
                for (lane, &term) in terms[..count].iter().enumerate() {
                    let sum = &mut sums[start.wrapping_add_signed(lane as isize * step)];
                    *sum = *sum + term;
                }
            }
        }
    }
}
