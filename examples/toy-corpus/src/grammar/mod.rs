//! The grammar: makes one sentence after another, in both languages at once.

mod clause;
mod noun_phrase;
mod question;
mod story;
mod tense;
mod verb_group;

use std::collections::VecDeque;

use self::tense::Tense;
use super::Pair;
use super::draw::Draw;
use super::lexicon::{ADJECTIVES, Kind, NOUNS, Person, VERBS};

const PEOPLE: &[Kind] = &[Kind::Child, Kind::Adult, Kind::Kin];

/// The nouns and adjectives of a sentence, by their place in the lexicon.
#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    pub(super) nouns: Vec<usize>,
    pub(super) adjectives: Vec<usize>,
    /// An adjective and the noun that it describes.
    pub(super) links: Vec<(usize, usize)>,
}

/// A verb, its person and its tense: dealt from a deck, so that every form occurs about equally often.
#[derive(Clone, Copy, Debug)]
struct Cell {
    verb: usize,
    person: Person,
    /// Present, past, or any that takes the infinitive.
    tense: Option<Tense>,
}

/// The chance of "Who eats the apple?", in percent.
const WHO: usize = 4;

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
    /// How many nouns are drawn, of which the least used one is taken.
    noun_draws: usize,
    /// By number.
    noun_uses: Vec<[u32; 2]>,
    /// By form, as in the lexicon; the fifth is the short form before a noun.
    adjective_uses: Vec<[u32; 5]>,
    record: Record,
}

impl Composer {
    pub(super) fn new(draw: Draw, noun_draws: usize) -> Self {
        Self {
            draw,
            noun_draws,
            deck: VecDeque::new(),
            dealt: None,
            noun_uses: vec![[0; 2]; NOUNS.len()],
            adjective_uses: vec![[0; 5]; ADJECTIVES.len()],
            record: Record::default(),
        }
    }

    /// The next sentence, with what it says about which noun.
    pub(super) fn sentence(&mut self) -> (Pair, Record) {
        self.record = Record::default();
        self.dealt = None;
        let (text, mark) = if self.draw.percent(WHO) {
            self.who()
        } else {
            let cell = self.deal();
            self.dealt = Some(cell);
            self.clause(cell)
        };
        (text.written(mark), std::mem::take(&mut self.record))
    }

    /// Records that the last sentence was not used, so that its verb form comes again.
    pub(super) fn refuse(&mut self) {
        self.deck.extend(self.dealt.take());
    }

    fn deal(&mut self) -> Cell {
        if self.deck.is_empty() {
            self.deck = self.shuffled_deck();
        }
        self.deck.pop_front().expect("a new deck has cells")
    }

    fn shuffled_deck(&mut self) -> VecDeque<Cell> {
        use Person::{I, Plural, Singular, We, You};
        let [present, past] = [Tense::Present, Tense::Past].map(Some);
        let tenses = [present, present, past, past, None];
        let mut cells = Vec::with_capacity(VERBS.len() * 30);
        for verb in 0..VERBS.len() {
            for person in [I, You, Singular, Singular, We, Plural] {
                cells.extend(tenses.map(|tense| Cell {
                    verb,
                    person,
                    tense,
                }));
            }
        }
        self.draw.shuffle(&mut cells);
        cells.into()
    }
}
