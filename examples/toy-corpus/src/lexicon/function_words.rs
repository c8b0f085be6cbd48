//! Determiners, names, adverbials, prepositions, and the verbs that help others.

use super::table::{Line, Row, Table, named, table};
use super::{Gender, Kind};

/// Every determiner. "El agua" is the business of the noun phrase.
pub(crate) static DETERMINERS: Table<Determiner> = table!("determiners.tsv");
/// The names of people.
pub(crate) static NAMES: Table<Name> = table!("names.tsv");
/// When something happens, and how often.
pub(crate) static ADVERBIALS: Table<Adverbial> = table!("adverbials.tsv");
/// Where something is.
pub(crate) static PREPOSITIONS: Table<Preposition> = table!("prepositions.tsv");

named! {
    /// What a determiner does, as far as a place in the sentence cares.
    Role {
        Definite = "definite",
        /// As definite, but for relatives, whom one does not point at.
        Demonstrative = "demonstrative",
        Possessive = "possessive",
        Indefinite = "indefinite",
        /// As indefinite, but not in an object under a negation or in a question, where English would choose another word.
        Affirmative = "affirmative",
        /// No determiner at all.
        Bare = "bare",
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

impl Row for Determiner {
    fn read(line: &Line) -> Result<Self, String> {
        let role = line.one("role")?;
        let forms = |english, spanish: [&str; 2]| {
            let word = line.optional(english)?;
            if role != Role::Bare && word.is_some() {
                return Ok((word, line.words(spanish)?));
            }
            let (word, reason) = if role == Role::Bare {
                (Some(""), "a bare noun has no determiner")
            } else {
                (None, "there is no English word for this number")
            };
            for column in [english, spanish[0], spanish[1]] {
                line.absent(column, reason)?;
            }
            Ok::<_, String>((word, [""; 2]))
        };
        let singular = forms("english", ["masculine", "feminine"])?;
        let plural = forms("english_plural", ["masculine_plural", "feminine_plural"])?;
        Ok(Self {
            english: [singular.0, plural.0],
            spanish: [singular.1, plural.1],
            role,
            weight: line.weight("weight")?,
        })
    }
}

/// A name, with its Spanish spelling.
#[derive(Debug)]
pub(crate) struct Name {
    pub(crate) english: &'static str,
    pub(crate) spanish: &'static str,
    pub(crate) gender: Gender,
}

impl Row for Name {
    fn read(line: &Line) -> Result<Self, String> {
        Ok(Self {
            english: line.word("english")?,
            spanish: line.word("spanish")?,
            gender: line.one("gender")?,
        })
    }
}

/// A phrase that says when or how often.
#[derive(Debug)]
pub(crate) struct Adverbial {
    pub(crate) english: &'static str,
    pub(crate) spanish: &'static str,
    pub(crate) uses: Vec<AdverbialUse>,
}

named! {
    /// What an adverbial goes with.
    AdverbialUse {
        /// The present, which is a habit.
        Habitual = "habitual",
        Past = "past",
        /// A past near enough for how someone felt or where something was.
        Recent = "recent",
        Future = "future",
        /// Before the verb in both languages.
        Frequency = "frequency",
    }
}

impl Row for Adverbial {
    fn read(line: &Line) -> Result<Self, String> {
        Ok(Self {
            english: line.word("english")?,
            spanish: line.word("spanish")?,
            uses: line.some("uses")?,
        })
    }
}

/// A preposition, with the kinds of landmarks in relation to which something is.
#[derive(Debug)]
pub(crate) struct Preposition {
    pub(crate) english: &'static str,
    pub(crate) spanish: &'static str,
    landmarks_of_things: Vec<Kind>,
    /// For people and animals.
    landmarks_of_living: Vec<Kind>,
}

impl Row for Preposition {
    fn read(line: &Line) -> Result<Self, String> {
        Ok(Self {
            english: line.word("english")?,
            spanish: line.word("spanish")?,
            landmarks_of_things: line.any("landmarks_of_things")?,
            landmarks_of_living: line.any("landmarks_of_living")?,
        })
    }
}

impl Preposition {
    /// What it relates something to, alive or not.
    pub(crate) fn landmarks(&self, alive: bool) -> &[Kind] {
        if alive {
            &self.landmarks_of_living
        } else {
            &self.landmarks_of_things
        }
    }
}

/// Present of "ser".
pub(crate) const SER: [&str; 5] = ["soy", "eres", "es", "somos", "son"];
/// Imperfect of "ser".
pub(crate) const SER_PAST: [&str; 5] = ["era", "eras", "era", "éramos", "eran"];
/// Present of "estar".
pub(crate) const ESTAR: [&str; 5] = ["estoy", "estás", "está", "estamos", "están"];
/// Imperfect of "estar".
pub(crate) const ESTAR_PAST: [&str; 5] = ["estaba", "estabas", "estaba", "estábamos", "estaban"];
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
/// The dative pronouns of "gustar", by person.
pub(crate) const DATIVE: [&str; 5] = ["me", "te", "le", "nos", "les"];
