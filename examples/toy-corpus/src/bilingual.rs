//! The same piece of text in both languages, and how it becomes a written sentence.

use super::Pair;

/// Words, or phrases of several words, in reading order on either side.
#[derive(Clone, Debug, Default)]
pub(super) struct Bilingual {
    english: Vec<&'static str>,
    spanish: Vec<&'static str>,
}

/// The final mark of a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Stop,
    Question,
}

impl Bilingual {
    pub(super) fn of(english: &'static str, spanish: &'static str) -> Self {
        Self {
            english: vec![english],
            spanish: vec![spanish],
        }
    }

    pub(super) fn add(&mut self, english: &'static str, spanish: &'static str) {
        self.add_english(english);
        self.add_spanish(spanish);
    }

    pub(super) fn add_english(&mut self, word: &'static str) {
        self.english.push(word);
    }

    pub(super) fn add_spanish(&mut self, word: &'static str) {
        self.spanish.push(word);
    }

    pub(super) fn append(&mut self, other: &Self) {
        self.append_english(other);
        self.append_spanish(other);
    }

    pub(super) fn append_english(&mut self, other: &Self) {
        self.english.extend(&other.english);
    }

    pub(super) fn append_spanish(&mut self, other: &Self) {
        self.spanish.extend(&other.spanish);
    }

    /// The English words of a phrase.
    pub(super) fn english(&self) -> String {
        with_an(&words(&self.english)).join(" ")
    }

    /// The pair as normal written text.
    pub(super) fn written(&self, mark: Mark) -> Pair {
        let english = capitalised(&self.english());
        let spanish = capitalised(&contracted(&words(&self.spanish)).join(" "));
        match mark {
            Mark::Stop => Pair {
                source: format!("{english}."),
                target: format!("{spanish}."),
            },
            Mark::Question => Pair {
                source: format!("{english}?"),
                target: format!("¿{spanish}?"),
            },
        }
    }
}

fn words(pieces: &[&'static str]) -> Vec<&'static str> {
    pieces
        .iter()
        .flat_map(|piece| piece.split_whitespace())
        .collect()
}

/// "an" before a vowel. The lexicon has no word whose first sound and first letter disagree.
fn with_an(words: &[&'static str]) -> Vec<&'static str> {
    let mut out = words.to_vec();
    for (word, next) in out.iter_mut().zip(words.iter().skip(1)) {
        if *word == "a" && next.starts_with(['a', 'e', 'i', 'o', 'u']) {
            *word = "an";
        }
    }
    out
}

/// "a el" is "al".
fn contracted(words: &[&'static str]) -> Vec<&'static str> {
    let mut out: Vec<&'static str> = Vec::with_capacity(words.len());
    for &word in words {
        match (out.last_mut(), word) {
            (Some(last), "el") if *last == "a" => *last = "al",
            _ => out.push(word),
        }
    }
    out
}

pub(super) fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(chars).collect()
    })
}
