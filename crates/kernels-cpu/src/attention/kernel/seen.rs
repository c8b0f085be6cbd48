//! The part of a block of keys that a panel of queries sees, and its scores.

use core::ops::Range;

use crate::{attention::kernel::tile::Panel, simd::real::Real};

/// How much of a block of keys is visible to a panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visibility {
    /// Nothing: the block is skipped.
    Hidden,
    /// Everything: no mask is applied.
    Visible,
    /// Some of the pairs may be hidden.
    Partial,
}

impl Visibility {
    pub(super) fn of(some_hidden: bool, some_visible: bool) -> Self {
        match (some_hidden, some_visible) {
            (true, true) => Self::Partial,
            (true, false) => Self::Hidden,
            (false, _) => Self::Visible,
        }
    }
}

/// A panel and the keys of a block that it sees, from the first to the last that causality, window, first keys, key length and a function may show.
pub(crate) struct Seen {
    pub(crate) panel: Panel,
    pub(crate) keys: Range<usize>,
    pub(crate) visibility: Visibility,
}

/// The scores of a panel, or their gradients.
pub(crate) struct Scores<'a, R> {
    pub(crate) seen: &'a Seen,
    /// One row per key, `stride` numbers apart.
    pub(crate) numbers: &'a mut [R],
    pub(crate) stride: usize,
}

impl<R: Real> Scores<'_, R> {
    /// The columns of the panel, one row per key.
    #[inline(always)]
    pub(crate) fn rows(&mut self) -> impl Iterator<Item = &mut [R]> {
        let (count, columns) = (self.seen.keys.len(), self.seen.panel.columns);
        let rows = self.numbers.chunks_mut(self.stride).take(count);
        rows.map(move |row| &mut row[..columns])
    }
}
