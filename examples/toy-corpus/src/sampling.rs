//! Sampling sentences and splitting them, so that nothing leaks from one part into another.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use super::draw::Draw;
use super::grammar::{Composer, Record};
use super::lexicon::{ADJECTIVES, NOUNS};
use super::{Pair, ToyCorpus};

const TRAIN: usize = 14_000;
const HELD_OUT: usize = 400;
const COMBINATIONS: usize = 300;
/// Noun–adjective pairs kept out of training.
const KEPT_OUT: usize = 30;
/// How many nouns are drawn, of which the least used one is taken: some nouns fit few verbs, and would be rare.
const NOUN_DRAWS: usize = 10;
/// Words of an English sentence.
const ENGLISH_WORDS: RangeInclusive<usize> = 3..=12;
/// Words of a Spanish sentence, which may lack its subject.
const SPANISH_WORDS: RangeInclusive<usize> = 2..=12;

pub(super) fn generate(seed: u64) -> ToyCorpus {
    let mut draw = Draw::new(seed);
    let kept_out = kept_out_combinations(&mut draw);
    let mut composer = Composer::new(draw, NOUN_DRAWS);
    let mut seen = BTreeSet::new();
    let (mut known, mut combinations) = (Vec::new(), Vec::new());
    while known.len() < TRAIN + HELD_OUT || combinations.len() < COMBINATIONS {
        let (pair, record) = composer.sentence();
        let has_words = ENGLISH_WORDS.contains(&words(&pair.source))
            && SPANISH_WORDS.contains(&words(&pair.target));
        let (part, size) = match split_of(&record, &kept_out).filter(|_| has_words) {
            Some(Split::Known) => (&mut known, TRAIN + HELD_OUT),
            Some(Split::Combination) => (&mut combinations, COMBINATIONS),
            None => {
                composer.refuse();
                continue;
            }
        };
        if !seen.insert(pair.source.clone()) {
            composer.refuse();
        } else if part.len() < size {
            part.push(pair);
        }
    }
    // From here on the grammar is done; the order is drawn from another stream.
    Draw::new(!seed).shuffle(&mut known);
    let (train, held_out) = hold_out(known);
    ToyCorpus {
        train,
        held_out,
        combinations,
    }
}

/// Takes the first pairs whose translation no other pair shares; the rest is for training.
fn hold_out(pairs: Vec<Pair>) -> (Vec<Pair>, Vec<Pair>) {
    let mut translations: BTreeMap<String, usize> = BTreeMap::new();
    for pair in &pairs {
        *translations.entry(pair.target.clone()).or_default() += 1;
    }
    let (mut train, mut held_out) = (Vec::with_capacity(TRAIN), Vec::with_capacity(HELD_OUT));
    for pair in pairs {
        if held_out.len() < HELD_OUT && translations[&pair.target] == 1 {
            held_out.push(pair);
        } else {
            train.push(pair);
        }
    }
    (train, held_out)
}

fn words(sentence: &str) -> usize {
    sentence.split_whitespace().count()
}

#[derive(Clone, Copy, Debug)]
enum Split {
    /// For training, or held out whole.
    Known,
    /// An adjective describes a noun that it was kept away from.
    Combination,
}

/// None for a sentence with both words of such a pair where one does not describe the other.
fn split_of(record: &Record, kept_out: &BTreeSet<(usize, usize)>) -> Option<Split> {
    if record.links.iter().any(|link| kept_out.contains(link)) {
        return Some(Split::Combination);
    }
    let meets = record.nouns.iter().any(|&noun| {
        let mut adjectives = record.adjectives.iter();
        adjectives.any(|&adjective| kept_out.contains(&(noun, adjective)))
    });
    (!meets).then_some(Split::Known)
}

/// Draws the noun–adjective pairs that training never sees: at most one for each noun and each adjective, and only
/// where the adjective keeps at least two other nouns that need the same forms of it.
pub(super) fn kept_out_combinations(draw: &mut Draw) -> BTreeSet<(usize, usize)> {
    let goes_with =
        |noun: usize, adjective: usize| ADJECTIVES[adjective].kinds.contains(&NOUNS[noun].kind);
    let needs_same_forms = |noun: usize, other: usize| {
        NOUNS[noun].gender == NOUNS[other].gender
            && NOUNS[noun].kind.is_mass() == NOUNS[other].kind.is_mass()
    };
    let mut candidates = Vec::new();
    for noun in 0..NOUNS.len() {
        for adjective in (0..ADJECTIVES.len()).filter(|&adjective| goes_with(noun, adjective)) {
            let others = (0..NOUNS.len())
                .filter(|&other| {
                    other != noun && goes_with(other, adjective) && needs_same_forms(noun, other)
                })
                .count();
            if others >= 2 {
                candidates.push((noun, adjective));
            }
        }
    }
    draw.shuffle(&mut candidates);
    let mut kept_out: BTreeSet<(usize, usize)> = BTreeSet::new();
    for (noun, adjective) in candidates {
        let fresh = kept_out.iter().all(|&(n, a)| n != noun && a != adjective);
        if fresh && kept_out.len() < KEPT_OUT {
            kept_out.insert((noun, adjective));
        }
    }
    kept_out
}
