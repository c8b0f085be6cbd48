//! Keys or values with zeros in place of hidden NaN and infinity.
//!
//! A hidden key has a weight of 0, but 0 · NaN is NaN. So where something may hide single keys of a block, zeros stand in for the rows that
//! are not finite, except for the panels that see them.

use core::ops::Range;

use pulp::Simd;

use crate::{
    attention::kernel::{seen::Scores, tile::FORWARD_KEYS},
    simd::real::Real,
    view::rows::Block,
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Row {
    Finite,
    /// Not finite, and zeros stand in for it.
    Zeros,
    /// Not finite, and shown because a panel sees it.
    Shown,
}

/// The rows of a block of keys.
pub(crate) struct Screened<'a, R> {
    original: Block<'a, R>,
    /// A copy of the rows with zeros for those that are not finite; empty if there are none, or none was searched for.
    screened: &'a mut [R],
    stride: usize,
    rows: [Row; FORWARD_KEYS],
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
        let mut rows = [Row::Finite; FORWARD_KEYS];
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
            if finite(index..index + 1) {
                copy.copy_from_slice(&row(index)[..padded]);
            } else {
                copy.fill(R::default());
                rows[index] = Row::Zeros;
            }
        }
        Self {
            original,
            screened,
            stride: padded,
            rows,
        }
    }

    /// The rows from `first` on as a panel reads them, whose scores are −∞ where a key is hidden.
    #[inline(always)]
    pub(crate) fn for_panel(&mut self, first: usize, scores: &mut Scores<'_, R>) -> Block<'_, R> {
        if self.screened.is_empty() {
            return self.original.after(first);
        }
        self.show_what_is_seen(first, scores);
        Block {
            data: self.screened,
            stride: self.stride,
        }
        .after(first)
    }

    /// Rarely called, so it is not inlined into the kernels of every instruction set.
    #[cold]
    #[inline(never)]
    fn show_what_is_seen(&mut self, first: usize, scores: &mut Scores<'_, R>) {
        let queries = scores.seen.panel.queries.count;
        for (index, scores) in (first..).zip(scores.rows()) {
            let row = &mut self.rows[index];
            if *row == Row::Finite {
                continue;
            }
            let seen = scores[..queries]
                .iter()
                .any(|&score| score != R::NEG_INFINITY);
            let copy = &mut self.screened[index * self.stride..][..self.stride];
            match (seen, *row) {
                (true, Row::Zeros) => {
                    copy.copy_from_slice(&self.original.after(index).data[..self.stride]);
                    *row = Row::Shown;
                }
                (false, Row::Shown) => {
                    copy.fill(R::default());
                    *row = Row::Zeros;
                }
                _ => {}
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
