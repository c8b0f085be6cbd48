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
mod pairs;
mod sampling;
mod stories;

#[cfg(test)]
mod tests;

pub use pairs::{Pair, ToyCorpus};
pub use stories::{Question, Story};

use self::{draw::Draw, grammar::Composer};

impl ToyCorpus {
    /// Makes the corpus of a seed.
    ///
    /// # Cost
    /// `O(sentences)`: tens of thousands of sentences are made and checked, a fraction of a second.
    pub fn generate(seed: u64) -> Self {
        sampling::generate(seed)
    }
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
