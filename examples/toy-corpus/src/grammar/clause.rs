//! Clauses with a full verb: statements, negations, questions.

use super::noun_phrase::{NounPhrase, Slot};
use super::tense::Tense;
use super::verb_group::VerbGroup;
use super::{Cell, Composer, Form, PEOPLE};
use crate::bilingual::{Bilingual, Mark};
use crate::lexicon::{
    ADVERBIALS, AdverbialUse, Kind, NOUNS, Number, Person, Property, VERBS, Verb,
};

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
pub(super) const LIVING: &[Kind] = &[Kind::Child, Kind::Adult, Kind::Kin, Kind::Animal];

/// Where animals are.
pub(super) const OUTDOORS: &[Kind] = &[Kind::Home, Kind::Shore, Kind::Town];

impl Composer {
    /// A clause with the verb, person and tense of a cell.
    pub(super) fn clause(&mut self, cell: Cell) -> (Bilingual, Mark) {
        let verb = &VERBS[cell.verb];
        let tense = cell.tense.unwrap_or_else(|| self.infinitive_tense(verb));
        let kinds = [PEOPLE, LIVING][usize::from(verb.has(Property::Animals))];
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
        let slot = match form {
            Form::Negative => Slot::DeniedSubject,
            _ => Slot::Subject,
        };
        let subject = self.subject(cell.person, kinds, slot);
        match form {
            Form::Affirmative => (self.affirmative(&group, &subject), Mark::Stop),
            Form::Negative => (self.negative(&group, &subject), Mark::Stop),
            Form::YesOrNo => {
                let mut text = group.question(&subject);
                text.append_spanish(&subject.text);
                text.append(&self.object(verb, Some(&subject), Slot::DoubtfulObject));
                text.append(&self.circumstances(&group, &subject, 45));
                (text, Mark::Question)
            }
            Form::Wh => (self.wh_question(&group, &subject), Mark::Question),
        }
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
        let needs_time = group.tense == Tense::Past && verb.past_needs_time();
        let time = self.time_of(group, if needs_time { 100 } else { 40 });
        let time_first = self.draw.percent(25);

        let mut text = Bilingual::default();
        if time_first {
            text.append(&time);
        }
        text.append(&subject.text);
        text.append(&group.affirmative());
        text.append(&self.object(verb, Some(subject), Slot::Object));
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
        let things = verb.objects.iter().copied();
        let things: Vec<Kind> = things.filter(|kind| !kind.is_human()).collect();
        let counted = things.iter().copied();
        let counted: Vec<Kind> = counted.filter(|kind| !kind.is_mass()).collect();
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
                let counted = self.noun_phrase(&counted, Slot::Counted, None, 30);
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
        let mut text = Bilingual::default();
        if let Some(object) = self.object_phrase(verb, subject, slot) {
            if object.kind.is_human() && !verb.has(Property::Possession) {
                text.add_spanish("a");
            }
            text.append(&object.text);
        }
        text
    }

    /// The direct object, if the verb has one.
    pub(super) fn object_phrase(
        &mut self,
        verb: &Verb,
        subject: Option<&NounPhrase>,
        slot: Slot,
    ) -> Option<NounPhrase> {
        let kinds = match subject {
            Some(subject) if subject.kind == Kind::Animal => &verb.animal_objects,
            _ => &verb.objects,
        };
        let slot = match verb.has(Property::Possession) {
            true => Slot::Unknown,
            false => slot,
        };
        (!kinds.is_empty()).then(|| self.noun_phrase(kinds, slot, None, 45))
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
        if let Some((role, someone)) = self.companion(verb, subject, [20, 25]) {
            match role {
                Property::Company => text.add("with", "con"),
                _ => text.add("for", "para"),
            }
            text.append(&someone);
        }
        text.append(&self.place_of(verb, subject.kind, verb.chance_of_place(55, 22)));
        text.append(&self.time_of(group, timed));
        text
    }

    /// Someone with whom, or for whom, the subject does something, each with a chance in percent.
    pub(super) fn companion(
        &mut self,
        verb: &Verb,
        subject: &NounPhrase,
        [company, beneficiary]: [usize; 2],
    ) -> Option<(Property, Bilingual)> {
        if subject.kind == Kind::Animal {
            return None;
        }
        let role = if verb.has(Property::Company) && self.draw.percent(company) {
            Property::Company
        } else if verb.has(Property::Beneficiary) && self.draw.percent(beneficiary) {
            Property::Beneficiary
        } else {
            return None;
        };
        Some((role, self.someone(subject)))
    }

    /// A relative, or a person by name if the subject has no name.
    fn someone(&mut self, subject: &NounPhrase) -> Bilingual {
        let named =
            subject.noun.is_none() && matches!(subject.person, Person::Singular | Person::Plural);
        if !named && self.draw.percent(40) {
            return self.name().text;
        }
        self.noun_phrase(&[Kind::Kin], Slot::Known, None, 15).text
    }

    /// Where the verb takes place or goes to, with a chance in percent.
    pub(super) fn place_of(&mut self, verb: &Verb, subject: Kind, chance: usize) -> Bilingual {
        let is_fit = |place: &Kind| subject != Kind::Animal || OUTDOORS.contains(place);
        let places: Vec<Kind> = verb.places.iter().copied().filter(is_fit).collect();
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

    /// "in the kitchen".
    pub(super) fn inside(&mut self, kinds: &[Kind]) -> Bilingual {
        let place = self.place(kinds);
        let preposition = place.noun.map_or("in", |noun| NOUNS[noun].preposition);
        let mut text = Bilingual::of(preposition, "en");
        text.append(&place.text);
        text
    }

    /// A place, as a noun phrase.
    pub(super) fn place(&mut self, kinds: &[Kind]) -> NounPhrase {
        self.noun_phrase(kinds, Slot::Known, Some(Number::Singular), 12)
    }

    /// A time that suits the tense, with a chance in percent.
    pub(super) fn time_of(&mut self, group: &VerbGroup<'_>, chance: usize) -> Bilingual {
        if group.verb.has(Property::Possession) || !self.draw.percent(chance) {
            return Bilingual::default();
        }
        let wanted = match group.tense {
            Tense::Present => AdverbialUse::Habitual,
            Tense::Past | Tense::WantedTo => AdverbialUse::Past,
            Tense::GoingTo | Tense::WantTo | Tense::Can => AdverbialUse::Future,
        };
        let times = ADVERBIALS.iter().filter(|time| time.usage == wanted);
        let time = self.draw.pick(&times.collect::<Vec<_>>());
        Bilingual::of(time.english, time.spanish)
    }
}
