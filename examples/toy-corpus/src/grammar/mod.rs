//! The grammar: makes one sentence after another, in both languages at once.

mod being;
mod clause;
mod liking;
mod noun_phrase;
mod place;
mod question;
mod story;
mod verb_group;

use std::collections::VecDeque;

use self::verb_group::Tense;
use super::Pair;
use super::bilingual::{Bilingual, Mark};
use super::draw::Draw;
use super::lexicon::{ADJECTIVES, ADVERBIALS, Adverbial, AdverbialUse, Kind, NOUNS, Person, VERBS};

const PEOPLE: &[Kind] = &[Kind::Child, Kind::Adult, Kind::Kin];

/// A sentence, with what it says about which noun.
#[derive(Debug)]
pub(super) struct Sentence {
    pub(super) pair: Pair,
    pub(super) record: Record,
}

/// The nouns and adjectives of a sentence, by their place in the lexicon.
#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    pub(super) nouns: Vec<usize>,
    pub(super) adjectives: Vec<usize>,
    /// An adjective and the noun that it describes.
    pub(super) links: Vec<(usize, usize)>,
}

impl Record {
    fn link(&mut self, noun: usize, adjective: usize) {
        self.describe(adjective);
        self.links.push((noun, adjective));
    }

    /// An adjective of a pronoun or a name.
    fn describe(&mut self, adjective: usize) {
        self.adjectives.push(adjective);
    }
}

/// A verb, its person and its tense: dealt from a deck, so that every form occurs about equally often.
#[derive(Clone, Copy, Debug)]
struct Cell {
    verb: usize,
    person: Person,
    /// Present, past, or any that takes the infinitive.
    tense: Option<Tense>,
}

#[derive(Clone, Copy, Debug)]
enum Frame {
    Clause,
    Who,
    Predicate,
    Comparison,
    Location,
    Existence,
    Ownership,
    Liking,
}

/// How often each kind of sentence is made, relative to the others.
const FRAMES: &[(u32, Frame)] = &[
    (70, Frame::Clause),
    (3, Frame::Who),
    (10, Frame::Predicate),
    (7, Frame::Comparison),
    (4, Frame::Location),
    (3, Frame::Existence),
    (2, Frame::Ownership),
    (4, Frame::Liking),
];

/// The shape of a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Affirmative,
    Negative,
    YesOrNo,
    Wh,
}

/// Makes sentences; the words it has used least come first.
#[derive(Debug)]
pub(super) struct Composer {
    draw: Draw,
    deck: VecDeque<Cell>,
    /// The cell of the last sentence, if it had one.
    dealt: Option<Cell>,
    /// By number.
    noun_uses: Vec<[u32; 2]>,
    /// By form, as in the lexicon; the fifth is the short form before a noun.
    adjective_uses: Vec<[u32; 5]>,
    comparative_uses: Vec<u32>,
    record: Record,
}

impl Composer {
    pub(super) fn new(draw: Draw) -> Self {
        Self {
            draw,
            deck: VecDeque::new(),
            dealt: None,
            noun_uses: vec![[0; 2]; NOUNS.len()],
            adjective_uses: vec![[0; 5]; ADJECTIVES.len()],
            comparative_uses: vec![0; ADJECTIVES.len()],
            record: Record::default(),
        }
    }

    /// The next sentence.
    pub(super) fn sentence(&mut self) -> Sentence {
        self.record = Record::default();
        self.dealt = None;
        let (text, mark) = match self.draw.weighted(FRAMES) {
            Frame::Clause => {
                let cell = self.deal();
                self.dealt = Some(cell);
                self.clause(cell)
            }
            Frame::Who => self.who(),
            Frame::Predicate => self.predicate(),
            Frame::Comparison => self.comparison(),
            Frame::Location => self.location(),
            Frame::Existence => self.existence(),
            Frame::Ownership => self.ownership(),
            Frame::Liking => self.liking(),
        };
        Sentence {
            pair: text.written(mark),
            record: std::mem::take(&mut self.record),
        }
    }

    /// Records that the last sentence was not used, so that its verb form comes again.
    pub(super) fn refuse(&mut self) {
        self.deck.extend(self.dealt.take());
    }

    fn deal(&mut self) -> Cell {
        loop {
            if let Some(cell) = self.deck.pop_front() {
                return cell;
            }
            self.deck = self.shuffled_deck();
        }
    }

    fn shuffled_deck(&mut self) -> VecDeque<Cell> {
        use Person::{I, Plural, Singular, We, You};
        const TENSES: [Option<Tense>; 5] = [
            Some(Tense::Present),
            Some(Tense::Present),
            Some(Tense::Past),
            Some(Tense::Past),
            None,
        ];
        let mut cells = Vec::with_capacity(VERBS.len() * 30);
        for verb in 0..VERBS.len() {
            for person in [I, You, Singular, Singular, We, Plural] {
                cells.extend(TENSES.map(|tense| Cell {
                    verb,
                    person,
                    tense,
                }));
            }
        }
        self.draw.shuffle(&mut cells);
        cells.into()
    }

    /// The person of a sentence that is not a clause.
    fn person(&mut self) -> Person {
        self.draw.weighted(&[
            (10, Person::I),
            (11, Person::You),
            (45, Person::Singular),
            (10, Person::We),
            (34, Person::Plural),
        ])
    }

    fn adverbial(&mut self, wanted: AdverbialUse) -> &'static Adverbial {
        let candidates: Vec<&Adverbial> = ADVERBIALS
            .iter()
            .filter(|adverbial| adverbial.uses.contains(&wanted))
            .collect();
        self.draw.pick(&candidates)
    }

    fn time(&mut self, wanted: AdverbialUse) -> Bilingual {
        let time = self.adverbial(wanted);
        Bilingual::of(time.english, time.spanish)
    }
}

impl Form {
    fn mark(self) -> Mark {
        match self {
            Form::Affirmative | Form::Negative => Mark::Stop,
            Form::YesOrNo | Form::Wh => Mark::Question,
        }
    }
}
