//! Noun phrases: determiner, adjective and noun, agreeing; pronouns and names.

use super::Composer;
use crate::bilingual::Bilingual;
use crate::lexicon::{
    ADJECTIVES, DETERMINERS, Determiner, Gender, Kind, NAMES, NOUNS, Noun, Number, Person, Role,
};

/// A phrase for a person or a thing.
#[derive(Clone, Debug)]
pub(super) struct NounPhrase {
    pub(super) text: Bilingual,
    pub(super) person: Person,
    pub(super) gender: Gender,
    pub(super) number: Number,
    /// Pronouns and names are adults.
    pub(super) kind: Kind,
    /// The noun's place in [`NOUNS`]; none for pronouns and names.
    pub(super) noun: Option<usize>,
}

/// The place of a noun phrase in a sentence, which decides its determiners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    Subject,
    /// The subject of a negation: "every boy does not run" may mean two things.
    DeniedSubject,
    /// The object of a statement that is not negated.
    Object,
    /// The object of a negation or a question.
    DoubtfulObject,
    /// Something the listener knows.
    Known,
    /// Something the listener does not know yet.
    Unknown,
    /// After a number asked for: no determiner, plural.
    Counted,
}

/// Where the uses of "buen" are counted, after those of the four forms that agree.
const SHORT_FORM: usize = 4;

impl Composer {
    /// A noun phrase with a noun of these kinds that the sentence does not have yet. The number is drawn if there is none; an adjective has a
    /// chance in percent.
    pub(super) fn noun_phrase(
        &mut self,
        kinds: &[Kind],
        slot: Slot,
        number: Option<Number>,
        adjective: usize,
    ) -> NounPhrase {
        let wanted = match (slot, number) {
            (Slot::Counted, _) => Number::Plural,
            (_, Some(number)) => number,
            (_, None) if self.draw.percent(42) => Number::Plural,
            (_, None) => Number::Singular,
        };
        let used = &self.record.nouns;
        let candidates: Vec<usize> = (0..NOUNS.len())
            .filter(|index| kinds.contains(&NOUNS[*index].kind) && !used.contains(index))
            .collect();
        let uses = |noun: usize| self.noun_uses[noun][wanted as usize];
        let draws = self.noun_draws;
        let index = self.draw.pick_little_used(&candidates, draws, uses);
        let noun = &NOUNS[index];
        let number = match noun.kind.is_mass() {
            true => Number::Singular,
            false => wanted,
        };
        self.noun_uses[index][number as usize] += 1;
        self.record.nouns.push(index);
        let adjective = match self.draw.percent(adjective) {
            true => self.adjective_for(noun.kind, noun.gender, number),
            false => None,
        };
        let determiner = self.determiner(slot, noun.kind, number);

        let mut text = Bilingual::default();
        if let Some(determiner) = determiner {
            let before =
                adjective.is_some_and(|adjective| ADJECTIVES[adjective].before_noun.is_some());
            text.add_english(determiner.english[number as usize].unwrap_or_default());
            text.add_spanish(spanish_determiner(determiner, noun, number, before));
        }
        let (english, spanish) = (noun.english[number as usize], noun.spanish[number as usize]);
        if let Some(adjective) = adjective {
            self.record.adjectives.push(adjective);
            self.record.links.push((index, adjective));
            let adjective = &ADJECTIVES[adjective];
            let agreeing = adjective.agreeing(noun.gender, number);
            text.add_english(adjective.english);
            let is_short = (noun.gender, number) == (Gender::Masculine, Number::Singular);
            let [first, second] = match adjective.before_noun {
                Some(short) if is_short => [short, spanish],
                Some(_) => [agreeing, spanish],
                None => [spanish, agreeing],
            };
            text.add_spanish(first);
            text.add_spanish(second);
        } else {
            text.add_spanish(spanish);
        }
        text.add_english(english);
        NounPhrase {
            text,
            person: [Person::Singular, Person::Plural][number as usize],
            gender: noun.gender,
            number,
            kind: noun.kind,
            noun: Some(index),
        }
    }

    /// An adjective that goes with nouns of this kind, to be used in the form that agrees.
    fn adjective_for(&mut self, kind: Kind, gender: Gender, number: Number) -> Option<usize> {
        let candidates: Vec<usize> = (0..ADJECTIVES.len())
            .filter(|index| ADJECTIVES[*index].kinds.contains(&kind))
            .collect();
        if candidates.is_empty() {
            return None;
        }
        let agreeing = number as usize * 2 + gender as usize;
        let form = |adjective: usize| match ADJECTIVES[adjective].before_noun {
            Some(_) if agreeing == 0 => SHORT_FORM,
            _ => agreeing,
        };
        let uses = |adjective: usize| self.adjective_uses[adjective][form(adjective)];
        let index = self.draw.pick_little_used(&candidates, 6, uses);
        self.adjective_uses[index][form(index)] += 1;
        Some(index)
    }

    fn determiner(
        &mut self,
        slot: Slot,
        kind: Kind,
        number: Number,
    ) -> Option<&'static Determiner> {
        let allowed: Vec<(u32, &Determiner)> = DETERMINERS
            .iter()
            .filter(|determiner| determiner.english[number as usize].is_some())
            .filter(|determiner| fits(determiner.role, slot, kind, number))
            .map(|determiner| match (kind, determiner.role) {
                // Relatives are mostly someone's.
                (Kind::Kin, Role::Possessive) => (4 * determiner.weight, determiner),
                _ => (determiner.weight, determiner),
            })
            .collect();
        (!allowed.is_empty()).then(|| self.draw.weighted(&allowed))
    }

    /// The subject of a clause, of one person; it may be one of `kinds` if it is a noun.
    ///
    /// In Spanish the pronouns that the verb's ending already says are left out: "yo", "tú" and "nosotros".
    pub(super) fn subject(&mut self, person: Person, kinds: &[Kind], slot: Slot) -> NounPhrase {
        match (person, self.draw.below(100)) {
            (Person::Singular, 28..42) => self.name(),
            (Person::Singular, 42..) => self.noun_phrase(kinds, slot, Some(Number::Singular), 35),
            (Person::Plural, 22..34) => self.two_names(),
            (Person::Plural, 34..) => self.noun_phrase(kinds, slot, Some(Number::Plural), 35),
            _ => self.pronoun(person),
        }
    }

    /// A personal pronoun; "he" as often as "she".
    fn pronoun(&mut self, person: Person) -> NounPhrase {
        use Gender::{Feminine, Masculine};
        let (english, spanish, gender, number) = match person {
            Person::I => ("I", "", Masculine, Number::Singular),
            Person::You => ("you", "", Masculine, Number::Singular),
            Person::We => ("we", "", Masculine, Number::Plural),
            Person::Plural => ("they", "ellos", Masculine, Number::Plural),
            Person::Singular => self.draw.pick(&[
                ("he", "él", Masculine, Number::Singular),
                ("she", "ella", Feminine, Number::Singular),
            ]),
        };
        person_phrase(Bilingual::of(english, spanish), person, gender, number)
    }

    pub(super) fn name(&mut self) -> NounPhrase {
        let name = &NAMES[self.draw.below(NAMES.len())];
        person_phrase(
            Bilingual::of(name.english, name.spanish),
            Person::Singular,
            name.gender,
            Number::Singular,
        )
    }

    fn two_names(&mut self) -> NounPhrase {
        let first = self.draw.below(NAMES.len());
        let second = (first + 1 + self.draw.below(NAMES.len() - 1)) % NAMES.len();
        let (first, second) = (&NAMES[first], &NAMES[second]);
        let mut text = Bilingual::of(first.english, first.spanish);
        text.add("and", "y");
        text.add(second.english, second.spanish);
        let gender = match first.gender == second.gender {
            true => first.gender,
            false => Gender::Masculine,
        };
        person_phrase(text, Person::Plural, gender, Number::Plural)
    }
}

fn person_phrase(text: Bilingual, person: Person, gender: Gender, number: Number) -> NounPhrase {
    NounPhrase {
        text,
        person,
        gender,
        number,
        kind: Kind::Adult,
        noun: None,
    }
}

/// "Agua" is feminine, but takes "el" right before its stressed a.
fn spanish_determiner(
    determiner: &Determiner,
    noun: &Noun,
    number: Number,
    adjective_before: bool,
) -> &'static str {
    let is_before_agua = noun.spanish[0] == "agua" && !adjective_before;
    let gender = match is_before_agua && determiner.spanish[0][0] == "el" {
        true => Gender::Masculine,
        false => noun.gender,
    };
    determiner.spanish[number as usize][gender as usize]
}

/// Whether a determiner may come before a noun in a slot.
fn fits(role: Role, slot: Slot, kind: Kind, number: Number) -> bool {
    let may_be_known = !matches!(slot, Slot::Unknown | Slot::Counted);
    match role {
        Role::Definite => may_be_known,
        Role::Demonstrative => may_be_known && kind != Kind::Kin,
        Role::Possessive => may_be_known && kind.is_owned(),
        Role::Indefinite => !kind.is_mass() && !matches!(slot, Slot::Known | Slot::Counted),
        Role::Affirmative => !kind.is_mass() && matches!(slot, Slot::Subject | Slot::Object),
        Role::Bare => {
            matches!(slot, Slot::Object | Slot::DoubtfulObject)
                && !kind.is_human()
                && (kind.is_mass() || number == Number::Plural)
        }
    }
}
