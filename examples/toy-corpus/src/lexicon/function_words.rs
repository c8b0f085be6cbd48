//! Determiners, names, adverbials, prepositions, and the verbs that help others.

use std::sync::LazyLock;

use super::table::{Table, named, rows};
use super::{Gender, Kind};

/// Every determiner. "El agua" is the business of the noun phrase.
pub(crate) static DETERMINERS: Table<Determiner> = LazyLock::new(|| {
    rows(
        include_str!("../../data/determiners.tsv"),
        |[singular, plural, m, f, mp, fp, role, weight]| {
            let role = Role::named(role)[0];
            let word =
                |text: &'static str| (role == Role::Bare || !text.is_empty()).then_some(text);
            Determiner {
                english: [singular, plural].map(word),
                spanish: [[m, f], [mp, fp]],
                role,
                weight: weight.parse().expect("a weight is a number"),
            }
        },
    )
});

/// The names of people.
pub(crate) static NAMES: Table<Name> = LazyLock::new(|| {
    rows(
        include_str!("../../data/names.tsv"),
        |[english, spanish, gender]| Name {
            english,
            spanish,
            gender: Gender::named(gender)[0],
        },
    )
});

/// When something happens.
pub(crate) static ADVERBIALS: Table<Adverbial> = LazyLock::new(|| {
    rows(
        include_str!("../../data/adverbials.tsv"),
        |[english, spanish, usage]| Adverbial {
            english,
            spanish,
            usage: AdverbialUse::named(usage)[0],
        },
    )
});

/// Where something is.
pub(crate) static PREPOSITIONS: Table<Preposition> = LazyLock::new(|| {
    rows(
        include_str!("../../data/prepositions.tsv"),
        |[english, things, living]| Preposition {
            english,
            landmarks: [things, living].map(Kind::named),
        },
    )
});

named! {
    /// What a determiner does, as far as a place in the sentence cares.
    Role {
        Definite,
        /// Where a definite one may be, except for relatives, whom one does not point at.
        Demonstrative,
        Possessive,
        Indefinite,
        /// Where an indefinite one may be, except in an object under a negation or in a question, where English would choose another word.
        Affirmative,
        /// No determiner at all.
        Bare,
    }
}

/// A determiner: `[singular, plural]` in English, by number and then gender in Spanish.
#[derive(Debug)]
pub(crate) struct Determiner {
    /// None if it does not go with the number; empty if it is bare.
    pub(crate) english: [Option<&'static str>; 2],
    pub(crate) spanish: [[&'static str; 2]; 2],
    pub(crate) role: Role,
    /// How often it is drawn, relative to the others.
    pub(crate) weight: u32,
}

/// A name, with its Spanish spelling.
#[derive(Debug)]
pub(crate) struct Name {
    pub(crate) english: &'static str,
    pub(crate) spanish: &'static str,
    pub(crate) gender: Gender,
}

/// A phrase that says when.
#[derive(Debug)]
pub(crate) struct Adverbial {
    pub(crate) english: &'static str,
    pub(crate) spanish: &'static str,
    pub(crate) usage: AdverbialUse,
}

named! {
    /// What an adverbial goes with.
    AdverbialUse {
        /// The present, which is a habit.
        Habitual,
        Past,
        Future,
    }
}

/// An English preposition of the stories.
#[derive(Debug)]
pub(crate) struct Preposition {
    pub(crate) english: &'static str,
    /// The kinds of landmarks in relation to which things are, and people and animals.
    pub(crate) landmarks: [Vec<Kind>; 2],
}

/// Present of "ir".
pub(crate) const IR: [&str; 5] = ["voy", "vas", "va", "vamos", "van"];
/// Present of "querer".
pub(crate) const QUERER: [&str; 5] = ["quiero", "quieres", "quiere", "queremos", "quieren"];
/// Imperfect of "querer".
pub(crate) const QUERER_PAST: [&str; 5] = ["quería", "querías", "quería", "queríamos", "querían"];
/// Present of "poder".
pub(crate) const PODER: [&str; 5] = ["puedo", "puedes", "puede", "podemos", "pueden"];
/// English "to be", present, by person.
pub(crate) const BE: [&str; 5] = ["am", "are", "is", "are", "are"];
/// English "to be", past, by person.
pub(crate) const BE_PAST: [&str; 5] = ["was", "were", "was", "were", "were"];
/// English "to do", present, by person.
pub(crate) const DO: [&str; 5] = ["do", "do", "does", "do", "do"];
