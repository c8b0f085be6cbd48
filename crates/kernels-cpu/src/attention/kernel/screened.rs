//! Keys or values without the NaN and infinity that nobody sees.
//!
//! A hidden key has a weight of 0, but 0 · NaN is NaN. So where something may hide single keys of a block, a panel reads zeros in place of
//! the rows that are not finite and that it does not see.

use core::ops::Range;

use pulp::Simd;

use crate::{
    attention::kernel::tile::{FORWARD_KEYS, Panel},
    simd::real::Real,
    view::rows::Block,
};

/// The rows of a block of keys.
pub(crate) struct Screened<'a, R> {
    original: Block<'a, R>,
    /// A copy, if not all rows are finite; otherwise empty.
    screened: &'a mut [R],
    stride: usize,
    finite: [bool; FORWARD_KEYS],
}

impl<'a, R: Real> Screened<'a, R> {
    /// `count` rows of `dim` numbers that are read up to `padded`, and a buffer for as many. The rows are searched only if `search`.
    #[inline(always)]
    pub(crate) fn new<S: Simd>(
        simd: S,
        original: Block<'a, R>,
        [count, dim, padded]: [usize; 3],
        buffer: &'a mut [R],
        search: bool,
    ) -> Self {
        let mut finite_rows = [true; FORWARD_KEYS];
        let row = |index: usize| &original.data[index * original.stride..];
        let one = R::from_f64(1.0);
        let finite =
            |rows: Range<usize>| all_finite(simd, rows.map(|index| &row(index)[..dim]), one);
        let screened = if !search || finite(0..count) {
            &mut buffer[..0]
        } else {
            &mut buffer[..count * padded]
        };
        for (index, copy) in screened.chunks_exact_mut(padded).enumerate() {
            copy.copy_from_slice(&row(index)[..padded]);
            finite_rows[index] = finite(index..index + 1);
        }
        Self {
            original,
            screened,
            stride: padded,
            finite: finite_rows,
        }
    }

    /// The rows of `part` as the panel reads them, whose scores are −∞ where a key is hidden.
    #[inline(always)]
    pub(crate) fn for_panel(
        &mut self,
        panel: &Panel,
        part: Range<usize>,
        scores: &[R],
        stride: usize,
    ) -> Block<'_, R> {
        if self.screened.is_empty() {
            return self.original.after(part.start);
        }
        self.hide_what_is_not_seen(panel, part.clone(), scores, stride);
        Block {
            data: self.screened,
            stride: self.stride,
        }
        .after(part.start)
    }

    /// NaN in a block is rare: this code is not inlined into every step of every instruction set.
    #[cold]
    #[inline(never)]
    fn hide_what_is_not_seen(
        &mut self,
        panel: &Panel,
        part: Range<usize>,
        scores: &[R],
        stride: usize,
    ) {
        for (index, scores) in part.zip(scores.chunks(stride)) {
            if self.finite[index] {
                continue;
            }
            let copy = &mut self.screened[index * self.stride..][..self.stride];
            let mut scores = scores[..panel.queries].iter();
            if scores.all(|&score| score == R::NEG_INFINITY) {
                copy.fill(R::default());
            } else {
                copy.copy_from_slice(&self.original.after(index).data[..self.stride]);
            }
        }
    }
}

/// Whether all numbers of these rows are finite, also times `factor`.
#[inline(always)]
pub(crate) fn all_finite<'a, S: Simd, R: Real>(
    simd: S,
    rows: impl Iterator<Item = &'a [R]>,
    factor: R,
) -> bool {
    // A sum of products with zero is NaN exactly if a number is not finite. Four sums, so that none waits for the one before.
    let zero = R::splat(simd, R::default());
    let factors = R::splat(simd, factor);
    let mut sums = [zero; 4];
    let mut rest = R::default();
    for row in rows {
        let vectors = R::vectors::<S>(row);
        for vectors in vectors.chunks(4) {
            for (sum, &x) in sums.iter_mut().zip(vectors) {
                *sum = R::mul_add(simd, R::times(simd, x, factors), zero, *sum);
            }
        }
        for &x in &row[vectors.len() * R::lanes::<S>()..] {
            rest = rest + x * factor * R::default();
        }
    }
    let [a, b, c, d] = sums;
    let sum = R::plus(simd, R::plus(simd, a, b), R::plus(simd, c, d));
    R::reduce_sum(simd, sum) + rest == R::default()
}
