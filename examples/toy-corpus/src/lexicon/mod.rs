//! The words of the toy languages, read from the tables in `data`: their forms, and which of them go together.
//!
//! The grammar knows a few words by their spelling: "agua" and "el" (feminine, but "el agua"), and "ir" (only its place is asked for).

mod adjectives;
mod function_words;
mod nouns;
mod table;
#[cfg(test)]
mod tests;
mod verbs;

pub(super) use adjectives::*;
pub(super) use function_words::*;
pub(super) use nouns::*;
pub(super) use verbs::*;

table::named! {
    /// Grammatical gender; it indexes a pair `[masculine, feminine]`.
    Gender {
        Masculine,
        Feminine,
    }
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
