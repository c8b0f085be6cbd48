//! Clauses with a full verb: statements, negations, questions.

use super::noun_phrase::{NounPhrase, Request, Slot};
use super::place::OUTDOORS;
use super::verb_group::{Tense, VerbGroup};
use super::{Cell, Composer, Form, PEOPLE};
use crate::bilingual::{Bilingual, Mark};
use crate::lexicon::{AdverbialUse, Kind, Person, Property, VERBS, Verb};

/// What a question asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    What,
    Whom,
    HowMany,
    When,
    Where,
    Why,
}

/// Subjects that a verb may have, if it is something that animals do.
const LIVING: &[Kind] = &[Kind::Child, Kind::Adult, Kind::Kin, Kind::Animal];

/// The determiners that a subject may have in a statement, a negation or a question.
pub(super) fn subject_slot(form: Form) -> Slot {
    match form {
        Form::Negative => Slot::DeniedSubject,
        Form::Affirmative | Form::YesOrNo | Form::Wh => Slot::Subject,
    }
}

impl Composer {
    /// A clause with the verb, person and tense of a cell.
    pub(super) fn clause(&mut self, cell: Cell) -> (Bilingual, Mark) {
        let verb = &VERBS[cell.verb];
        let tense = cell.tense.unwrap_or_else(|| self.infinitive_tense(verb));
        let kinds = if verb.has(Property::Animals) {
            LIVING
        } else {
            PEOPLE
        };
        let group = VerbGroup {
            verb,
            tense,
            person: cell.person,
        };
        let weights = match (cell.person, tense) {
            // "Do I swim?" is a question that few people ask.
            (Person::I, Tense::Present | Tense::WantTo) => [70, 30, 0, 0],
            // Only here does English have "swims".
            (Person::Singular, Tense::Present) => [65, 13, 11, 11],
            _ => [50, 18, 15, 17],
        };
        let form = self.draw.weighted(&[
            (weights[0], Form::Affirmative),
            (weights[1], Form::Negative),
            (weights[2], Form::YesOrNo),
            (weights[3], Form::Wh),
        ]);
        let subject = self.subject(cell.person, kinds, subject_slot(form));
        let text = match form {
            Form::Affirmative => self.affirmative(&group, &subject),
            Form::Negative => self.negative(&group, &subject),
            Form::YesOrNo => {
                let mut text = group.question(&subject);
                text.append_spanish(&subject.text);
                text.append(&self.object(verb, Some(&subject), Slot::DoubtfulObject));
                text.append(&self.circumstances(&group, &subject, 45));
                text
            }
            Form::Wh => self.wh_question(&group, &subject),
        };
        (text, form.mark())
    }

    /// "Who eats the apple?"
    pub(super) fn who(&mut self) -> (Bilingual, Mark) {
        let verb = &VERBS[self.draw.below(VERBS.len())];
        let tense = self
            .draw
            .pick(&[Some(Tense::Present), Some(Tense::Past), None]);
        let group = VerbGroup {
            verb,
            tense: tense.unwrap_or_else(|| self.infinitive_tense(verb)),
            person: Person::Singular,
        };
        let mut text = Bilingual::of("who", "quién");
        text.append(&group.affirmative());
        text.append(&self.object(verb, None, Slot::DoubtfulObject));
        text.append(&self.place_of(verb, Kind::Adult, 30));
        text.append(&self.time_of(&group, 30));
        (text, Mark::Question)
    }

    fn infinitive_tense(&mut self, verb: &Verb) -> Tense {
        if verb.has(Property::Accident) {
            return Tense::GoingTo;
        }
        self.draw.weighted(&[
            (5, Tense::GoingTo),
            (2, Tense::WantTo),
            (1, Tense::WantedTo),
            (2, Tense::Can),
        ])
    }

    fn affirmative(&mut self, group: &VerbGroup<'_>, subject: &NounPhrase) -> Bilingual {
        let verb = group.verb;
        let frequency = if group.tense == Tense::Present
            && !verb.has(Property::Possession)
            && self.draw.percent(22)
        {
            Some(self.adverbial(AdverbialUse::Frequency))
        } else {
            None
        };
        let timed = if group.tense == Tense::Past && verb.past_needs_time() {
            100
        } else if frequency.is_some() {
            0
        } else {
            40
        };
        let time = self.time_of(group, timed);
        let slot = match frequency {
            _ if verb.has(Property::Possession) => Slot::Unknown,
            Some(adverb) if adverb.english == "never" => Slot::DoubtfulObject,
            _ => Slot::Object,
        };
        let time_first = self.draw.percent(25);

        let mut text = Bilingual::default();
        if time_first {
            text.append(&time);
        }
        text.append(&subject.text);
        if let Some(adverb) = frequency {
            text.add(adverb.english, adverb.spanish);
        }
        text.append(&group.affirmative());
        text.append(&self.object(verb, Some(subject), slot));
        text.append(&self.circumstances(group, subject, 0));
        if !time_first {
            text.append(&time);
        }
        text
    }

    fn negative(&mut self, group: &VerbGroup<'_>, subject: &NounPhrase) -> Bilingual {
        let mut text = subject.text.clone();
        text.append(&group.negative());
        text.append(&self.object(group.verb, Some(subject), Slot::DoubtfulObject));
        text.append(&self.circumstances(group, subject, 35));
        text
    }

    fn wh_question(&mut self, group: &VerbGroup<'_>, subject: &NounPhrase) -> Bilingual {
        let verb = group.verb;
        let things: Vec<Kind> = verb
            .objects
            .iter()
            .copied()
            .filter(|kind| !kind.is_human())
            .collect();
        let counted: Vec<Kind> = things
            .iter()
            .copied()
            .filter(|kind| !kind.is_mass())
            .collect();
        let by_person = subject.kind != Kind::Animal;
        let mut choices = Vec::new();
        if !things.is_empty() {
            choices.push((30, Asked::What));
        }
        if by_person && !counted.is_empty() {
            choices.push((25, Asked::HowMany));
        }
        if by_person && !verb.has(Property::Possession) && things.len() < verb.objects.len() {
            choices.push((40, Asked::Whom));
        }
        if !verb.has(Property::Possession) {
            choices.extend([(20, Asked::When), (15, Asked::Why)]);
            if !verb.places.is_empty() && (!verb.has(Property::Motion) || verb.infinitive == "ir") {
                let weight = if verb.has(Property::Motion) { 60 } else { 25 };
                choices.push((weight, Asked::Where));
            }
        }
        let asked = self.draw.weighted(&choices);
        let mut text = match asked {
            Asked::What => Bilingual::of("what", "qué"),
            Asked::Whom => Bilingual::of("who", "a quién"),
            Asked::When => Bilingual::of("when", "cuándo"),
            Asked::Where if verb.has(Property::Motion) => Bilingual::of("where", "adónde"),
            Asked::Where => Bilingual::of("where", "dónde"),
            Asked::Why => Bilingual::of("why", "por qué"),
            Asked::HowMany => {
                let counted = self.noun_phrase(Request {
                    kinds: &counted,
                    slot: Slot::Counted,
                    number: None,
                    adjective: 30,
                });
                let mut text =
                    Bilingual::of("how many", ["cuántos", "cuántas"][counted.gender as usize]);
                text.append(&counted.text);
                text
            }
        };
        text.append(&group.question(subject));
        text.append_spanish(&subject.text);
        if matches!(asked, Asked::When | Asked::Where | Asked::Why) {
            text.append(&self.object(verb, Some(subject), Slot::DoubtfulObject));
        }
        if asked != Asked::Where {
            text.append(&self.place_of(verb, subject.kind, 30));
        }
        if asked != Asked::When {
            text.append(&self.time_of(group, 25));
        }
        text
    }

    /// The direct object, after the personal "a" if it is human; empty for an intransitive verb.
    fn object(&mut self, verb: &Verb, subject: Option<&NounPhrase>, slot: Slot) -> Bilingual {
        let kinds = match subject {
            Some(subject) if subject.kind == Kind::Animal => &verb.animal_objects,
            _ => &verb.objects,
        };
        if kinds.is_empty() {
            return Bilingual::default();
        }
        let object = self.noun_phrase(Request {
            kinds,
            slot: if verb.has(Property::Possession) {
                Slot::Unknown
            } else {
                slot
            },
            number: None,
            adjective: 45,
        });
        let mut text = Bilingual::default();
        if object.kind.is_human() && !verb.has(Property::Possession) {
            text.add_spanish("a");
        }
        text.append(&object.text);
        text
    }

    /// With whom, for whom, where and when.
    fn circumstances(
        &mut self,
        group: &VerbGroup<'_>,
        subject: &NounPhrase,
        timed: usize,
    ) -> Bilingual {
        let verb = group.verb;
        let mut text = Bilingual::default();
        if subject.kind != Kind::Animal {
            if verb.has(Property::WithCompany) && self.draw.percent(20) {
                text.add("with", "con");
                text.append(&self.someone(subject));
            } else if verb.has(Property::ForSomeone) && self.draw.percent(25) {
                text.add("for", "para");
                text.append(&self.someone(subject));
            }
        }
        let placed = match (verb.has(Property::Motion), verb.objects.is_empty()) {
            (true, _) => 100,
            (false, true) => 55,
            (false, false) => 22,
        };
        text.append(&self.place_of(verb, subject.kind, placed));
        text.append(&self.time_of(group, timed));
        text
    }

    /// A relative, or a person by name if the subject has no name.
    pub(super) fn someone(&mut self, subject: &NounPhrase) -> Bilingual {
        let named =
            subject.noun.is_none() && matches!(subject.person, Person::Singular | Person::Plural);
        if !named && self.draw.percent(40) {
            return self.name().text;
        }
        let relative = Request {
            kinds: &[Kind::Kin],
            slot: Slot::Known,
            number: None,
            adjective: 15,
        };
        self.noun_phrase(relative).text
    }

    /// Where the verb takes place or goes to, with a chance in percent.
    pub(super) fn place_of(&mut self, verb: &Verb, subject: Kind, chance: usize) -> Bilingual {
        let places: Vec<Kind> = verb
            .places
            .iter()
            .copied()
            .filter(|place| subject != Kind::Animal || OUTDOORS.contains(place))
            .collect();
        if places.is_empty() || !self.draw.percent(chance) {
            return Bilingual::default();
        }
        if verb.has(Property::Motion) {
            let mut text = Bilingual::of("to", "a");
            text.append(&self.place(&places).text);
            text
        } else {
            self.inside(&places)
        }
    }

    /// A time that suits the tense, with a chance in percent.
    pub(super) fn time_of(&mut self, group: &VerbGroup<'_>, chance: usize) -> Bilingual {
        if group.verb.has(Property::Possession) || !self.draw.percent(chance) {
            return Bilingual::default();
        }
        self.time(match group.tense {
            Tense::Present => AdverbialUse::Habitual,
            Tense::Past | Tense::WantedTo => AdverbialUse::Past,
            Tense::GoingTo | Tense::WantTo | Tense::Can => AdverbialUse::Future,
        })
    }
}
