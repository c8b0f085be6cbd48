//! Questions about stories. No question has two answers.

use std::ops::Range;

use super::Composer;
use super::noun_phrase::NounPhrase;
use super::story::{Event, Part, Phrase};
use super::verb_group::{VerbGroup, be};
use crate::Question;
use crate::bilingual::capitalised;
use crate::lexicon::{Kind, Number, Person, Property, VERBS};

impl Composer {
    /// The questions about a story in which this happens.
    pub(super) fn questions(&mut self, text: &str, events: &[Event]) -> Vec<Question> {
        let mut questions = Vec::new();
        for (number, event) in events.iter().enumerate() {
            let others: Vec<&Event> = (events.iter().enumerate())
                .filter_map(|(other, event)| (other != number).then_some(event))
                .collect();
            let found = match event.verb {
                Some(verb) => self.about_happening(text, event, verb, &others),
                None => about_being(text, event, &others),
            };
            questions.extend(found);
        }
        questions
    }

    fn about_happening(
        &mut self,
        text: &str,
        event: &Event,
        verb: usize,
        others: &[&Event],
    ) -> Vec<Question> {
        let alike: Vec<&&Event> = (others.iter())
            .filter(|other| other.verb == Some(verb))
            .collect();
        let group = VerbGroup {
            verb: &VERBS[verb],
            tense: event.tense,
            person: event.subject.person,
        };
        let object = event.phrase(text, Part::Object);
        // What the story has told of is "the hat" from then on; but who had "a sister"?
        let object = object.map(|object| match group.verb.has(Property::Possession) {
            true => object.to_string(),
            false => definite(object),
        });
        let mut found = Vec::new();
        if alike.iter().all(|other| !event.is_about_same(other)) {
            let asked = group.question(&event.subject).english();
            for phrase in &event.phrases {
                found.extend(self.about_phrase(text, event, phrase, &asked, object.as_deref()));
            }
            found.extend(how_many(text, event, &asked));
        }
        let is_told_apart = |other: &&&Event| match (&event.object, &other.object) {
            (Some(one), Some(other)) => one.noun != other.noun,
            _ => false,
        };
        if alike.iter().all(is_told_apart) {
            let group = VerbGroup {
                person: asked_for(&event.subject),
                ..group
            };
            let word = who(&event.subject);
            let mut question = [word, &group.affirmative().english()].join(" ");
            question = extended(question, object.as_deref());
            if let Some(company) = &event.company {
                question = format!("{question} with {company}");
            }
            if object.is_none() || self.draw.percent(40) {
                question = extended(question, event.phrase(text, Part::Place));
            }
            if self.draw.percent(30) {
                question = extended(question, event.phrase(text, Part::Time));
            }
            found.push(Question::new(question, event.named.clone()));
        }
        found
    }

    /// The question that a phrase answers, of "did Ana buy" and "the hat".
    fn about_phrase(
        &mut self,
        text: &str,
        event: &Event,
        Phrase { part, at }: &Phrase,
        asked: &str,
        object: Option<&str>,
    ) -> Option<Question> {
        let verb = event.verb.map(|verb| &VERBS[verb]);
        let has = |property| verb.is_some_and(|verb| verb.has(property));
        let goes = verb.is_some_and(|verb| verb.english[0] == "go");
        let of = |word: &str| format!("{word} {asked}");
        let with_object = |word: &str| extended(of(word), object);
        let question = match part {
            Part::Object => {
                let object = event.object.as_ref()?;
                match object.kind.is_human() {
                    // "Who did Ana have?"
                    true if has(Property::Possession) => return None,
                    true => of("who"),
                    false => of("what"),
                }
            }
            Part::Company => format!("{} with", with_object("who")),
            Part::Beneficiary => format!("{} for", with_object("who")),
            // "Where did Ana come?"
            Part::Place if has(Property::Motion) && !goes => return None,
            Part::Place => with_object("where"),
            Part::Time => with_object("when"),
            Part::Reason => with_object("why"),
        };
        // "When did Ana swim at the lake?"
        let more = match part {
            Part::Object | Part::Time | Part::Reason if self.draw.percent(40) => Some(Part::Place),
            Part::Place if self.draw.percent(30) => Some(Part::Time),
            _ => None,
        };
        let more = more.and_then(|part| event.phrase(text, part));
        Some(Question::new(extended(question, more), at.clone()))
    }
}

impl Event {
    /// Whether someone does what both sentences tell: the subject of one, or who is with it.
    fn is_about_same(&self, other: &Self) -> bool {
        let is_same = match (self.subject.noun, other.subject.noun) {
            (None, None) => self.subject.text.english() == other.subject.text.english(),
            (one, other) => one == other,
        };
        is_same || self.is_with(&other.subject) || other.is_with(&self.subject)
    }

    /// Whether the company may be this one.
    fn is_with(&self, one: &NounPhrase) -> bool {
        let last_word = |text: &str| text.split(' ').next_back().map(String::from);
        let name = last_word(&one.text.english());
        self.company
            .as_deref()
            .is_some_and(|company| last_word(company) == name)
    }
}

impl Question {
    fn new(question: String, answer: Range<usize>) -> Self {
        let text = format!("{}?", capitalised(&question));
        Self { text, answer }
    }
}

/// "How many red hats did Ana buy?", of "two red hats".
fn how_many(text: &str, event: &Event, asked: &str) -> Option<Question> {
    let mut phrases = event.phrases.iter();
    let object = phrases.find(|phrase| phrase.part == Part::Object)?;
    let start = object.at.start;
    let (number, counted) = text[object.at.clone()].split_once(' ')?;
    ["two", "three", "many"].contains(&number).then(|| {
        let question = format!("how many {counted} {asked}");
        Question::new(question, start..start + number.len())
    })
}

/// "Where was the book?" and "What was on the table?", if no other sentence has the book or the table.
fn about_being(text: &str, event: &Event, others: &[&Event]) -> Vec<Question> {
    let mut found = Vec::new();
    let is_new = |noun: Option<usize>| {
        noun.is_some_and(|noun| others.iter().all(|other| !other.nouns.contains(&noun)))
    };
    let Some(place) = event.phrases.first() else {
        return found;
    };
    if is_new(event.subject.noun) {
        let subject = event.subject.text.english();
        let be = be(event.tense, event.subject.person);
        let question = format!("where {be} {subject}");
        found.push(Question::new(question, place.at.clone()));
    }
    // The last noun of the sentence is the place.
    if is_new(event.nouns.last().copied()) {
        let word = who(&event.subject);
        let be = be(event.tense, asked_for(&event.subject));
        let question = format!("{word} {be} {}", &text[place.at.clone()]);
        found.push(Question::new(question, event.named.clone()));
    }
    found
}

/// "Who" is singular, whoever it is.
fn asked_for(subject: &NounPhrase) -> Person {
    match subject.kind {
        Kind::Animal => subject.person,
        _ => Person::Singular,
    }
}

fn who(subject: &NounPhrase) -> &'static str {
    match (subject.kind, subject.number) {
        (Kind::Animal, Number::Singular) => "which animal",
        (Kind::Animal, Number::Plural) => "which animals",
        (kind, _) if kind.is_human() => "who",
        _ => "what",
    }
}

/// "the hat" for "a hat".
fn definite(object: &str) -> String {
    match object.split_once(' ') {
        Some(("a" | "an", rest)) => format!("the {rest}"),
        _ => object.to_string(),
    }
}

fn extended(question: String, phrase: Option<&str>) -> String {
    let Some(phrase) = phrase else {
        return question;
    };
    // A time that begins its sentence is capitalised there.
    let (first, rest) = phrase.split_at(1);
    format!("{question} {}{rest}", first.to_ascii_lowercase())
}

#[cfg(test)]
mod tests;
