//! Adjectives: their forms, their verb "to be", and the nouns they go with.

use super::table::{Line, Row, Table, named, table};
use super::{Gender, Kind, Number};

/// Every adjective.
pub(crate) static ADJECTIVES: Table<Adjective> = table!("adjectives.tsv");

/// An adjective: one English form, four Spanish ones.
#[derive(Debug)]
pub(crate) struct Adjective {
    pub(crate) english: &'static str,
    /// "bigger", or "more expensive"; none if it is not compared.
    pub(crate) comparative: Option<&'static str>,
    /// Masculine and feminine singular, masculine and feminine plural.
    pub(crate) spanish: [&'static str; 4],
    /// The short masculine singular of an adjective that stands before its noun ("buen").
    pub(crate) before_noun: Option<&'static str>,
    pub(crate) copula: Copula,
    pub(crate) kinds: Vec<Kind>,
}

named! {
    /// Which verb "to be" goes with a predicate.
    Copula {
        /// What something is.
        Ser = "ser",
        /// How something is now.
        Estar = "estar",
    }
}

impl Row for Adjective {
    fn read(line: &Line) -> Result<Self, String> {
        Ok(Self {
            english: line.word("english")?,
            comparative: line.optional("comparative")?,
            spanish: line.words([
                "masculine",
                "feminine",
                "masculine_plural",
                "feminine_plural",
            ])?,
            before_noun: line.optional("before_noun")?,
            copula: line.one("copula")?,
            kinds: line.some("kinds")?,
        })
    }
}

impl Adjective {
    /// The form that agrees.
    pub(crate) fn agreeing(&self, gender: Gender, number: Number) -> &'static str {
        self.spanish[number as usize * 2 + gender as usize]
    }
}
