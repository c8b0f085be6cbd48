//! The tenses of the grammar.

/// Tense and mood of a clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tense {
    Present,
    Past,
    GoingTo,
    WantTo,
    WantedTo,
    Can,
}
