//! Nouns.

use std::sync::LazyLock;

use super::Gender;
use super::table::{Table, named, rows};

/// Every noun.
pub(crate) static NOUNS: Table<Noun> = LazyLock::new(|| {
    rows(
        include_str!("../../data/nouns.tsv"),
        |[
            english,
            english_plural,
            spanish,
            spanish_plural,
            gender,
            kind,
            preposition,
        ]| Noun {
            english: [english, english_plural],
            spanish: [spanish, spanish_plural],
            gender: Gender::named(gender)[0],
            kind: Kind::named(kind)[0],
            preposition,
        },
    )
});

/// A noun: `[singular, plural]` in both languages; the plural of a mass noun is empty.
#[derive(Debug)]
pub(crate) struct Noun {
    pub(crate) english: [&'static str; 2],
    pub(crate) spanish: [&'static str; 2],
    pub(crate) gender: Gender,
    pub(crate) kind: Kind,
    /// The English preposition for being there (Spanish always has "en"); empty if it is no place.
    pub(crate) preposition: &'static str,
}

named! {
    /// What a noun means, as far as verbs and adjectives care.
    Kind {
        Child, Adult, Kin, Animal, Fruit, Produce, Sweet, Staple, Meat,
        Cooked, Plain, Brewed, Text, Clothing, Vessel, Fragile, Furniture, Opening,
        Vehicle, Small, Plant, Home, Public, Shop, Shore, Town,
    }
}

impl Kind {
    /// Mass nouns have no plural and take no "a".
    pub(crate) fn is_mass(self) -> bool {
        use Kind::{Brewed, Cooked, Meat, Plain, Staple};
        matches!(self, Staple | Meat | Cooked | Plain | Brewed)
    }

    /// Human objects take the personal "a" in Spanish.
    pub(crate) fn is_human(self) -> bool {
        matches!(self, Kind::Child | Kind::Adult | Kind::Kin)
    }

    /// What people call theirs.
    pub(crate) fn is_owned(self) -> bool {
        use Kind::{Adult, Child, Plant, Public, Shop, Shore, Town};
        !matches!(self, Child | Adult | Plant | Public | Shop | Shore | Town)
    }
}
