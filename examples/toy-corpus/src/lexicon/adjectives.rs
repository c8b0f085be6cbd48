//! Adjectives: their forms, and the nouns they go with.

use std::sync::LazyLock;

use super::table::{Table, rows};
use super::{Gender, Kind, Number};

/// Every adjective.
pub(crate) static ADJECTIVES: Table<Adjective> = LazyLock::new(|| {
    rows(
        include_str!("../../data/adjectives.tsv"),
        |[english, m, f, mp, fp, before_noun, copula, kinds]| Adjective {
            english,
            spanish: [m, f, mp, fp],
            before_noun: (!before_noun.is_empty()).then_some(before_noun),
            is_state: copula == "estar",
            kinds: Kind::named(kinds),
        },
    )
});

/// An adjective: one English form, four Spanish ones.
#[derive(Debug)]
pub(crate) struct Adjective {
    pub(crate) english: &'static str,
    /// Masculine and feminine singular, masculine and feminine plural.
    pub(crate) spanish: [&'static str; 4],
    /// The short masculine singular of an adjective that stands before its noun ("buen").
    pub(crate) before_noun: Option<&'static str>,
    /// Whether it says how something is now ("estar"), not what it is ("ser").
    pub(crate) is_state: bool,
    pub(crate) kinds: Vec<Kind>,
}

impl Adjective {
    /// The form that agrees.
    pub(crate) fn agreeing(&self, gender: Gender, number: Number) -> &'static str {
        self.spanish[number as usize * 2 + gender as usize]
    }
}
