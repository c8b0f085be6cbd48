//! Short English stories, and questions that phrases of them answer.

use std::ops::{Range, RangeInclusive};

use super::clause::{LIVING, OUTDOORS};
use super::noun_phrase::{NounPhrase, Slot};
use super::tense::Tense;
use super::verb_group::{VerbGroup, be};
use super::{Composer, PEOPLE};
use crate::Story;
use crate::lexicon::{ADJECTIVES, Gender, Kind, Number, PREPOSITIONS, Person, Property, VERBS};

/// Sentences of a story.
const SENTENCES: RangeInclusive<usize> = 4..=7;
/// Questions about a story at most.
const QUESTIONS: usize = 4;

/// Where people are.
const PLACES: &[Kind] = &[
    Kind::Home,
    Kind::Public,
    Kind::Shop,
    Kind::Shore,
    Kind::Town,
];

/// What a phrase says about what happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Object,
    /// With whom.
    Company,
    /// For whom.
    Beneficiary,
    Place,
    Time,
    Reason,
}

/// A phrase of a story, without the preposition or conjunction that no answer begins with.
#[derive(Clone, Debug)]
pub(super) struct Phrase {
    pub(super) part: Part,
    pub(super) at: Range<usize>,
}

/// What a sentence of a story tells.
#[derive(Debug)]
pub(super) struct Event {
    /// None is "to be".
    pub(super) verb: Option<usize>,
    pub(super) tense: Tense,
    /// Who or what it is about, even where the story says "she".
    pub(super) subject: NounPhrase,
    /// Where the story names the subject.
    pub(super) named: Range<usize>,
    pub(super) object: Option<NounPhrase>,
    /// Who does the same with the subject, as the story says it.
    pub(super) company: Option<String>,
    pub(super) phrases: Vec<Phrase>,
    /// All nouns of the sentence.
    pub(super) nouns: Vec<usize>,
}

impl Composer {
    /// The next story.
    pub(crate) fn story(&mut self) -> Story {
        let sentences = SENTENCES.count();
        let sentences = SENTENCES.start() + self.draw.below(sentences);
        let mut text = String::new();
        let mut events: Vec<Event> = Vec::new();
        for _ in 0..sentences {
            if !text.is_empty() {
                text.push(' ');
            }
            self.record = super::Record::default();
            let event = match self.draw.percent(20) {
                true => self.being_somewhere(&mut text),
                false => self.happening(&mut text, events.last()),
            };
            events.push(event);
        }
        let mut questions = self.questions(&text, &events);
        self.draw.shuffle(&mut questions);
        questions.truncate(QUESTIONS);
        Story { text, questions }
    }

    /// "The red book was on the table."
    fn being_somewhere(&mut self, text: &mut String) -> Event {
        let others = &[Kind::Animal, Kind::Text, Kind::Small, Kind::Clothing];
        let kinds = [PEOPLE, others].concat();
        let subject = self.noun_phrase(&kinds, Slot::Known, None, 30);
        let tense = match self.draw.percent(70) {
            true => Tense::Past,
            false => Tense::Present,
        };
        let start = text.len();
        let named = add(text, &subject.text.english());
        add(text, be(tense, subject.person));
        let place = self.whereabouts(subject.kind);
        let at = add(text, &place);
        end_sentence(text, start);
        Event {
            verb: None,
            tense,
            subject,
            named,
            object: None,
            company: None,
            phrases: vec![Phrase {
                part: Part::Place,
                at,
            }],
            nouns: self.record.nouns.clone(),
        }
    }

    /// Where someone (an animal too) or something of this kind may be, in English alone.
    fn whereabouts(&mut self, kind: Kind) -> String {
        let alive = kind.is_human() || kind == Kind::Animal;
        if alive && self.draw.percent(65) {
            let places = [PLACES, OUTDOORS][usize::from(kind == Kind::Animal)];
            return self.inside(places).english();
        }
        let carried = matches!(kind, Kind::Text | Kind::Clothing | Kind::Small);
        let (preposition, kinds) = if carried && self.draw.percent(30) {
            ("in", [Kind::Vessel].as_slice())
        } else {
            let candidates: Vec<_> = PREPOSITIONS
                .iter()
                .map(|word| (word.english, word.landmarks[usize::from(alive)].as_slice()))
                .filter(|(_, landmarks)| !landmarks.is_empty())
                .collect();
            self.draw.pick(&candidates)
        };
        let landmark = self.place(kinds);
        format!("{preposition} {}", landmark.text.english())
    }

    /// "Yesterday Ana bought a hat for my sister because she was happy."
    fn happening(&mut self, text: &mut String, before: Option<&Event>) -> Event {
        let verb = self.draw.below(VERBS.len());
        let tense = self.draw.weighted(&[
            (70, Tense::Past),
            (20, Tense::Present),
            (10, Tense::GoingTo),
        ]);
        let again = before
            .filter(|event| self.draw.percent(30) && event.can_be_a_pronoun())
            .map(|event| (event.subject.clone(), event.named.clone()));
        let (subject, named_before) = match again {
            Some((subject, named)) => {
                // Nobody helps herself.
                self.record.nouns.extend(subject.noun);
                (subject, Some(named))
            }
            None => (self.protagonist(verb), None),
        };
        let group = VerbGroup {
            verb: &VERBS[verb],
            tense,
            person: subject.person,
        };
        let object = self.object_phrase(group.verb, Some(&subject), Slot::Object);
        let companion = self.companion(group.verb, &subject, [25, 30]);
        let chance = group.verb.chance_of_place(60, 40);
        let place = self.place_of(group.verb, subject.kind, chance);
        let time = self.time_of(&group, 50);
        let time_first = self.draw.percent(25);
        let reason = (subject.kind.is_human() && self.draw.percent(18))
            .then(|| self.reason(&subject, tense));

        let start = text.len();
        let mut phrases = Vec::new();
        let mut say = |text: &mut String, part: Part, phrase: &str| {
            if !phrase.is_empty() {
                let at = add(text, phrase);
                phrases.push(Phrase { part, at });
            }
        };
        if time_first {
            say(text, Part::Time, &time.english());
        }
        let named = match named_before {
            Some(named) => {
                add(text, pronoun(&subject));
                named
            }
            None => add(text, &subject.text.english()),
        };
        add(text, &group.affirmative().english());
        if let Some(object) = &object {
            say(text, Part::Object, &object.text.english());
        }
        let mut company = None;
        if let Some((role, someone)) = companion {
            let someone = someone.english();
            if role == Property::Company {
                add(text, "with");
                say(text, Part::Company, &someone);
                company = Some(someone);
            } else {
                add(text, "for");
                say(text, Part::Beneficiary, &someone);
            }
        }
        say(text, Part::Place, &place.english());
        if !time_first {
            say(text, Part::Time, &time.english());
        }
        if let Some(reason) = reason {
            add(text, "because");
            say(text, Part::Reason, &reason);
        }
        end_sentence(text, start);
        Event {
            verb: Some(verb),
            tense,
            subject,
            named,
            object,
            company,
            phrases,
            nouns: self.record.nouns.clone(),
        }
    }

    fn protagonist(&mut self, verb: usize) -> NounPhrase {
        if self.draw.percent(45) {
            return self.name();
        }
        let kinds = [PEOPLE, LIVING][usize::from(VERBS[verb].has(Property::Animals))];
        self.noun_phrase(kinds, Slot::Known, None, 30)
    }

    /// "she was tired"
    fn reason(&mut self, subject: &NounPhrase, tense: Tense) -> String {
        let moods = ADJECTIVES.iter();
        let moods = moods.filter(|mood| mood.is_state && mood.kinds.contains(&subject.kind));
        let moods: Vec<&str> = moods.map(|mood| mood.english).collect();
        let (be, mood) = (be(tense, subject.person), self.draw.pick(&moods));
        format!("{} {be} {mood}", pronoun(subject))
    }
}

impl Event {
    /// Whether "he" or "she" in the next sentence can be nobody but its subject.
    fn can_be_a_pronoun(&self) -> bool {
        let is_person = |part| matches!(part, Part::Company | Part::Beneficiary);
        let has_person = self.phrases.iter().any(|phrase| is_person(phrase.part))
            || (self.object.iter()).any(|object| object.kind.is_human());
        !has_person && self.subject.kind.is_human() && self.subject.person == Person::Singular
    }

    pub(super) fn phrase<'a>(&self, text: &'a str, wanted: Part) -> Option<&'a str> {
        let phrase = self.phrases.iter().find(|phrase| phrase.part == wanted)?;
        Some(&text[phrase.at.clone()])
    }
}

/// "he", "she" or "they". The nouns of people have the gender of whom they name.
fn pronoun(subject: &NounPhrase) -> &'static str {
    match (subject.number, subject.gender) {
        (Number::Plural, _) => "they",
        (Number::Singular, Gender::Masculine) => "he",
        (Number::Singular, Gender::Feminine) => "she",
    }
}

/// Adds words to a story, and says where they are.
fn add(text: &mut String, words: &str) -> Range<usize> {
    if !text.is_empty() && !text.ends_with(' ') {
        text.push(' ');
    }
    let start = text.len();
    text.push_str(words);
    start..text.len()
}

/// The letters of the toy English are ASCII, so no position moves.
fn end_sentence(text: &mut String, start: usize) {
    text[start..=start].make_ascii_uppercase();
    text.push('.');
}
