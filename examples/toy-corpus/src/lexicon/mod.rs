//! The words of the toy languages, as tables: what a sentence is made of, and which words go together.

mod adjectives;
mod function_words;
mod nouns;
mod verbs;

pub(super) use adjectives::ADJECTIVES;
pub(super) use function_words::*;
pub(super) use nouns::NOUNS;
pub(super) use verbs::VERBS;

/// Grammatical gender; it indexes a pair `[masculine, feminine]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gender {
    Masculine,
    Feminine,
}

/// Grammatical number; it indexes a pair `[singular, plural]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    Singular,
    Plural,
}

/// Who a verb agrees with; it indexes the five forms of a Spanish tense.
///
/// There is no polite and no plural "you": English "you" is always "tú", and "they" is always "ellos".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Person {
    I,
    You,
    Singular,
    We,
    Plural,
}

/// What a noun means, as far as verbs and adjectives care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Child,
    Adult,
    Kin,
    Animal,
    Fruit,
    Produce,
    Sweet,
    Staple,
    Meat,
    Cooked,
    Plain,
    Brewed,
    Text,
    Clothing,
    Vessel,
    Fragile,
    Furniture,
    Opening,
    Vehicle,
    Small,
    Plant,
    Home,
    Public,
    Shop,
    Shore,
    Town,
}

impl Kind {
    /// Mass nouns have no plural and take no "a".
    pub(super) fn is_mass(self) -> bool {
        use Kind::{Brewed, Cooked, Meat, Plain, Staple};
        matches!(self, Staple | Meat | Cooked | Plain | Brewed)
    }

    /// Human objects take the personal "a" in Spanish.
    pub(super) fn is_human(self) -> bool {
        matches!(self, Kind::Child | Kind::Adult | Kind::Kin)
    }

    /// What people call theirs.
    pub(super) fn is_owned(self) -> bool {
        use Kind::{Adult, Child, Plant, Public, Shop, Shore, Town};
        !matches!(self, Child | Adult | Plant | Public | Shop | Shore | Town)
    }
}

/// A noun: `[singular, plural]` in both languages.
#[derive(Debug)]
pub(super) struct Noun {
    pub(super) english: [&'static str; 2],
    pub(super) spanish: [&'static str; 2],
    pub(super) gender: Gender,
    pub(super) kind: Kind,
    /// The English preposition for being there (Spanish always has "en"), for places.
    pub(super) preposition: Option<&'static str>,
}

/// Which verb "to be" goes with a predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Copula {
    /// What something is.
    Ser,
    /// How something is now.
    Estar,
}

/// An adjective: one English form, four Spanish ones.
#[derive(Debug)]
pub(super) struct Adjective {
    pub(super) english: &'static str,
    /// "bigger", or "more expensive"; none if it is not compared.
    pub(super) comparative: Option<&'static str>,
    /// Masculine and feminine singular, masculine and feminine plural.
    pub(super) spanish: [&'static str; 4],
    /// The short masculine singular of an adjective that stands before its noun ("buen").
    pub(super) before_noun: Option<&'static str>,
    pub(super) copula: Copula,
    pub(super) kinds: &'static [Kind],
}

impl Adjective {
    /// The form that agrees.
    pub(super) fn agreeing(&self, gender: Gender, number: Number) -> &'static str {
        self.spanish[number as usize * 2 + gender as usize]
    }
}

/// What a verb does besides its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Movement {
    /// It takes place somewhere.
    Stays,
    /// It goes to a place: "to" and "a" instead of "in" and "en".
    Goes,
}

/// A verb with all its forms and what may stand around it.
#[derive(Debug)]
pub(super) struct Verb {
    /// Base form, third person singular, past.
    pub(super) english: [&'static str; 3],
    pub(super) infinitive: &'static str,
    pub(super) present: [&'static str; 5],
    /// The preterite; for "tener" the imperfect, as Spanish speakers use it for what lasts.
    pub(super) past: [&'static str; 5],
    /// Kinds of its direct object; empty for an intransitive verb.
    pub(super) objects: &'static [Kind],
    /// Kinds of its object when an animal is the subject; `None` if animals do not do it.
    pub(super) animal_objects: Option<&'static [Kind]>,
    /// Kinds of places where, or to which, it happens.
    pub(super) places: &'static [Kind],
    pub(super) movement: Movement,
    /// "with my sister" may follow.
    pub(super) with_company: bool,
    /// "for my sister" may follow.
    pub(super) for_someone: bool,
    /// Nobody wants to do it.
    pub(super) accident: bool,
    /// A state, without times, and its objects are not yet known ("has a dog").
    pub(super) possession: bool,
    /// The English past looks like the base form, so a statement in the past always has a time.
    pub(super) past_needs_time: bool,
}
