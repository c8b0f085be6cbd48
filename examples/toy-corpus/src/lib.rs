//! A toy corpus of English and Spanish sentences, made by a grammar from a seed; and stories with questions about them, in the same English.
//!
//! Every English sentence has one Spanish translation, and only one. The rules that make it so:
//! - "you" is one friend ("tú"); "they" is "ellos"; "his", "her" and "their" are all "su".
//! - Spanish leaves out "yo", "tú" and "nosotros", which the verb's ending says, and keeps "él", "ella" and "ellos".
//! - "I", "you", "we" and "they" agree in the masculine, as Spanish does when it does not know.
//! - The English past is the Spanish preterite; of "to have" and "to want" it is the imperfect.
//! - "is going to" is "ir a"; times keep their place; a question puts the verb before its subject.
//! - A human object takes "a"; most adjectives follow their noun; "bueno" and "malo" stand before it.
//!
//! The words are the tables in `data`, whose README says how to add one.

mod bilingual;
mod draw;
mod grammar;
mod lexicon;
mod sampling;

#[cfg(test)]
mod tests;

use std::ops::Range;

use self::{draw::Draw, grammar::Composer};

/// A sentence and its translation, as written text.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pair {
    /// The English sentence.
    pub source: String,
    /// The Spanish sentence.
    pub target: String,
}

/// The three parts of a corpus. No English sentence is in two of them, and no Spanish sentence of `train` is in another.
///
/// The same seed gives the same corpus on every machine, as long as the tables of words and the grammar stay as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToyCorpus {
    /// What a model learns from: 14,000 pairs.
    pub train: Vec<Pair>,
    /// 400 sentences that are not in `train`, of words that are.
    pub held_out: Vec<Pair>,
    /// 300 sentences in which an adjective describes a noun that is never in the same sentence in `train`,
    /// in any number or form, although each of the two occurs there with others.
    pub combinations: Vec<Pair>,
}

impl ToyCorpus {
    /// Makes the corpus of a seed.
    ///
    /// # Cost
    /// `O(sentences)`: tens of thousands of sentences are made and checked, a fraction of a second.
    pub fn generate(seed: u64) -> Self {
        sampling::generate(seed)
    }
}

/// A short English story, and questions that phrases of it answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Story {
    /// Four to seven sentences.
    pub text: String,
    /// At most four.
    pub questions: Vec<Question>,
}

/// A question about a story.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The question.
    pub text: String,
    /// Which bytes of the story answer it.
    pub answer: Range<usize>,
}

impl Story {
    /// Makes stories from a seed, in the words of the corpus: who did what, where, when, with whom and why.
    ///
    /// The same seed gives the same stories on every machine, as long as the tables of words and the grammar stay as they are.
    pub fn generate(seed: u64, count: usize) -> Vec<Self> {
        let mut composer = Composer::new(Draw::new(seed), 2);
        (0..count).map(|_| composer.story()).collect()
    }
}
