//! Visible functions: whether a query sees a key.

use core::{
    fmt::{Debug, Formatter, Result},
    ops::Range,
};

use pulp::{Simd, WithSimd};

use crate::{
    Blocks, Broadcast,
    attention::function::{
        lines::{CHUNK, Lines, Looped, MOST_CAPTURED, Pair, Place},
        number::Number,
    },
    threads::parallel::widest,
};

/// Whether a query sees a key, from the indices of both and `N` captured integers of the pair.
///
/// ```
/// use burn_attn_kernels_cpu::tiled::{Pair, PairBlock, Shown, VisibleForm};
///
/// struct Causal;
///
/// impl VisibleForm<0> for Causal {
///     fn visible(&self, pair: Pair, _: [i64; 0]) -> bool {
///         pair.distance() >= 0
///     }
///
///     fn block(&self, block: &PairBlock) -> Shown {
///         let (keys, positions) = (&block.keys, &block.positions);
///         match (positions.start >= keys.end - 1, positions.end - 1 >= keys.start) {
///             (true, _) => Shown::All,
///             (_, true) => Shown::Some,
///             _ => Shown::Nothing,
///         }
///     }
/// }
/// ```
///
/// PyTorch equivalent: a `mask_mod` of `flex_attention`.
pub trait VisibleForm<const N: usize>: Send + Sync + 'static {
    /// Whether the query sees the key.
    fn visible(&self, pair: Pair, captured: [i64; N]) -> bool;

    /// How much of a block is shown, if that is known without evaluating its pairs. [`Shown::Some`] is always right.
    fn block(&self, block: &PairBlock) -> Shown {
        let _ = block;
        Shown::Some
    }
}

/// How much is shown of a block of queries and keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// No query sees a key.
    Nothing,
    /// Some pairs may be visible, and others hidden.
    Some,
    /// Every query sees every key.
    All,
}

/// A block of at least one query and at least one key of a head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairBlock {
    /// Item of the batch.
    pub batch_item: usize,
    /// Query head.
    pub head: usize,
    /// Indices of the queries.
    pub queries: Range<i64>,
    /// Indices of the keys.
    pub keys: Range<i64>,
    /// The keys at which the queries stand.
    pub positions: Range<i64>,
}

/// The loops around a [`VisibleForm`], in both precisions of scores.
pub trait VisibleForms: VisibleLoops<f32> + VisibleLoops<f64> {
    /// How many integers the function reads.
    fn captured(&self) -> usize;

    /// As [`VisibleForm::block`].
    fn block(&self, block: &PairBlock) -> Shown;

    /// As [`VisibleForm::visible`]; the captured integers of the pair are at the start of each place.
    fn visible(&self, pair: Pair, captured: &[(&[i64], Place)]) -> bool;
}

/// The loop around a [`VisibleForm`].
pub trait VisibleLoops<R>: Send + Sync {
    /// Sets the scores of hidden pairs to −∞.
    fn hide(&self, lines: Lines, scores: &mut [R], captured: &[(&[i64], Place)]);
}

/// A visible function in one call.
#[derive(Clone, Copy)]
pub struct VisibleFunction<'a> {
    /// The function.
    pub form: &'a dyn VisibleForms,
    /// One tensor for each integer that the function reads.
    pub captured: &'a [Broadcast<'a, i64>],
    /// `true` for blocks that the function shows whole.
    pub whole: Option<Blocks<'a>>,
}

impl Debug for VisibleFunction<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("VisibleFunction")
            .field("captured", &self.captured)
            .finish_non_exhaustive()
    }
}

impl<F: VisibleForm<N>, const N: usize> VisibleForms for Looped<F, N> {
    fn captured(&self) -> usize {
        const {
            assert!(
                N <= MOST_CAPTURED,
                "a visible form reads at most 6 captured tensors"
            )
        };
        N
    }

    fn block(&self, block: &PairBlock) -> Shown {
        self.0.block(block)
    }

    fn visible(&self, pair: Pair, captured: &[(&[i64], Place)]) -> bool {
        let captured = core::array::from_fn(|index| {
            let (data, place) = captured[index];
            data[place.start]
        });
        self.0.visible(pair, captured)
    }
}

impl<R: Number, F: VisibleForm<N>, const N: usize> VisibleLoops<R> for Looped<F, N> {
    fn hide(&self, lines: Lines, scores: &mut [R], captured: &[(&[i64], Place)]) {
        widest(Hide {
            form: &self.0,
            lines,
            scores,
            captured: core::array::from_fn::<_, N, _>(|index| captured[index]),
        });
    }
}

struct Hide<'a, R, F, const N: usize> {
    form: &'a F,
    lines: Lines,
    scores: &'a mut [R],
    captured: [(&'a [i64], Place); N],
}

impl<R: Number, F: VisibleForm<N>, const N: usize> WithSimd for Hide<'_, R, F, N> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for chunk @ (line, first, count) in self.lines.chunks() {
            let captured = self.captured.map(|(data, place)| place.read(data, chunk));
            let start = line * self.lines.stride + first;
            let scores = &mut self.scores[start..start + count];
            let mut visible = [true; CHUNK];
            for (lane, visible) in visible.iter_mut().enumerate() {
                let pair = self.lines.pair_of_chunk(chunk, lane);
                let captured = core::array::from_fn(|index| captured[index][lane]);
                *visible = self.form.visible(pair, captured);
            }
            for (score, visible) in scores.iter_mut().zip(visible) {
                *score = if visible { *score } else { R::NEG_INFINITY };
            }
        }
    }
}
