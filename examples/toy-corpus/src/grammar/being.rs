//! Sentences with "to be": how, where and whose something is, what is bigger, what there is.

use super::noun_phrase::{NounPhrase, Position, Request, Slot};
use super::{Composer, Form, PEOPLE};
use crate::bilingual::{Bilingual, Mark};
use crate::lexicon::{
    ADJECTIVES, AdverbialUse, BE, BE_PAST, Copula, ESTAR, ESTAR_PAST, Kind, NOUNS, Number, Person,
    SER, SER_PAST,
};

/// Things that are around the house.
const THINGS: &[Kind] = &[
    Kind::Fruit,
    Kind::Produce,
    Kind::Text,
    Kind::Clothing,
    Kind::Small,
    Kind::Fragile,
    Kind::Vessel,
];
/// What is counted, or someone.
const FOUND: &[Kind] = &[
    Kind::Child,
    Kind::Adult,
    Kind::Animal,
    Kind::Fruit,
    Kind::Text,
    Kind::Clothing,
    Kind::Small,
    Kind::Fragile,
    Kind::Vessel,
];

impl Composer {
    /// "The girl is tall." / "La niña es alta."
    pub(super) fn predicate(&mut self) -> (Bilingual, Mark) {
        let every_kind: Vec<Kind> = NOUNS.iter().map(|noun| noun.kind).collect();
        let person = self.person();
        let subject = self.described(person, &every_kind);
        let Some(index) = self.adjective_for(
            subject.kind,
            subject.gender,
            subject.number,
            Position::Predicate,
        ) else {
            return self.predicate();
        };
        match subject.noun {
            Some(noun) => self.record.link(noun, index),
            None => self.record.describe(index),
        }
        let adjective = &ADJECTIVES[index];
        let past = self.draw.percent(35);
        let (be, es) = copula(adjective.copula, past, person);
        let mut quality = Bilingual::default();
        if adjective.comparative.is_some() && self.draw.percent(22) {
            quality.add("very", "muy");
        }
        quality.add(
            adjective.english,
            adjective.agreeing(subject.gender, subject.number),
        );
        let alive = subject.kind.is_human() || subject.kind == Kind::Animal;
        let form = self.draw.weighted(&[
            (50, Form::Affirmative),
            (22, Form::Negative),
            (18, Form::YesOrNo),
            (10, Form::Wh),
        ]);
        let mut text = match form {
            Form::Affirmative | Form::Negative => statement(form, &subject.text, be, es, &quality),
            Form::YesOrNo | Form::Wh => {
                let mut text = Bilingual::default();
                if form == Form::Wh {
                    text.add("why", "por qué");
                }
                text.add(be, es);
                text.append_english(&subject.text);
                text.append(&quality);
                text.append_spanish(&subject.text);
                text
            }
        };
        if alive && past && adjective.copula == Copula::Estar && self.draw.percent(40) {
            text.append(&self.time(AdverbialUse::Recent));
        }
        (text, form.mark())
    }

    /// "The dog is bigger than the cat." / "El perro es más grande que el gato."
    pub(super) fn comparison(&mut self) -> (Bilingual, Mark) {
        let compared: Vec<usize> = (0..ADJECTIVES.len())
            .filter(|index| ADJECTIVES[*index].comparative.is_some())
            .collect();
        let uses = &self.comparative_uses;
        let index = self
            .draw
            .pick_little_used(&compared, 4, |adjective| uses[adjective]);
        self.comparative_uses[index] += 1;
        let adjective = &ADJECTIVES[index];
        let kind = self.draw.pick(&adjective.kinds);
        let number = self.number();
        let (subject, other) = (self.compared(kind, number), self.compared(kind, number));
        for noun in [subject.noun, other.noun].into_iter().flatten() {
            self.record.link(noun, index);
        }
        let (be, es) = copula(adjective.copula, false, subject.person);
        let mut quality = Bilingual::of(adjective.comparative.unwrap_or_default(), "más");
        quality.add_spanish(adjective.agreeing(subject.gender, subject.number));
        quality.add("than", "que");
        quality.append(&other.text);
        let form = self
            .draw
            .weighted(&[(75, Form::Affirmative), (25, Form::Negative)]);
        (statement(form, &subject.text, be, es, &quality), Mark::Stop)
    }

    /// "The book is on the table." / "El libro está en la mesa."
    pub(super) fn location(&mut self) -> (Bilingual, Mark) {
        let person = self.person();
        let kinds: Vec<Kind> = if self.draw.percent(50) {
            THINGS.to_vec()
        } else {
            [PEOPLE, &[Kind::Animal]].concat()
        };
        let subject = self.described(person, &kinds);
        let past = self.draw.percent(35);
        let (be, es) = copula(Copula::Estar, past, person);
        let form = self.draw.weighted(&[
            (50, Form::Affirmative),
            (18, Form::Negative),
            (18, Form::YesOrNo),
            (14, Form::Wh),
        ]);
        let mut text = match form {
            Form::Affirmative | Form::Negative => {
                let place = self.whereabouts(subject.kind);
                statement(form, &subject.text, be, es, &place)
            }
            Form::YesOrNo => {
                let mut text = Bilingual::of(be, es);
                text.append(&subject.text);
                text.append(&self.whereabouts(subject.kind));
                text
            }
            Form::Wh => {
                let mut text = Bilingual::of("where", "dónde");
                text.add(be, es);
                text.append(&subject.text);
                text
            }
        };
        if past && self.draw.percent(30) {
            text.append(&self.time(AdverbialUse::Recent));
        }
        (text, form.mark())
    }

    /// "There are two cats in the garden." / "Hay dos gatos en el jardín."
    pub(super) fn existence(&mut self) -> (Bilingual, Mark) {
        let found = self.noun_phrase(Request {
            kinds: FOUND,
            slot: Slot::Unknown,
            number: None,
            adjective: 35,
        });
        let past = self.draw.percent(35);
        let be = if past { BE_PAST } else { BE }[found.person as usize];
        let hay = if past { "había" } else { "hay" };
        let form = self
            .draw
            .weighted(&[(75, Form::Affirmative), (25, Form::YesOrNo)]);
        let mut text = Bilingual::of("", hay);
        if form == Form::Affirmative {
            text.add_english("there");
            text.add_english(be);
        } else {
            text.add_english(be);
            text.add_english("there");
        }
        text.append(&found.text);
        text.append(&self.whereabouts(found.kind));
        (text, form.mark())
    }

    /// "This is my red car." / "Este es mi coche rojo."
    pub(super) fn ownership(&mut self) -> (Bilingual, Mark) {
        let kinds: Vec<Kind> = NOUNS
            .iter()
            .map(|noun| noun.kind)
            .filter(|kind| kind.is_owned() && !kind.is_mass())
            .collect();
        let number = self.number();
        let owned = self.noun_phrase(Request {
            kinds: &kinds,
            slot: Slot::Owned,
            number: Some(number),
            adjective: 55,
        });
        let this = match (self.draw.percent(60), number) {
            (true, Number::Singular) => {
                Bilingual::of("this", ["este", "esta"][owned.gender as usize])
            }
            (true, Number::Plural) => {
                Bilingual::of("these", ["estos", "estas"][owned.gender as usize])
            }
            (false, Number::Singular) => {
                Bilingual::of("that", ["ese", "esa"][owned.gender as usize])
            }
            (false, Number::Plural) => {
                Bilingual::of("those", ["esos", "esas"][owned.gender as usize])
            }
        };
        let (be, es) = copula(Copula::Ser, false, owned.person);
        let form = self.draw.weighted(&[
            (60, Form::Affirmative),
            (20, Form::Negative),
            (20, Form::YesOrNo),
        ]);
        let text = if form == Form::YesOrNo {
            let mut text = Bilingual::of(be, es);
            text.append(&this);
            text.append(&owned.text);
            text
        } else {
            statement(form, &this, be, es, &owned.text)
        };
        (text, form.mark())
    }

    /// A subject without an adjective, which is described later.
    fn described(&mut self, person: Person, kinds: &[Kind]) -> NounPhrase {
        let number = match person {
            Person::Singular => Number::Singular,
            Person::Plural => Number::Plural,
            _ => return self.pronoun(person),
        };
        let countable: Vec<Kind> = kinds
            .iter()
            .copied()
            .filter(|kind| number == Number::Singular || !kind.is_mass())
            .collect();
        if kinds.contains(&Kind::Adult) && self.draw.percent(25) {
            return if person == Person::Singular && self.draw.percent(34) {
                self.name()
            } else {
                self.pronoun(person)
            };
        }
        self.noun_phrase(Request {
            kinds: &countable,
            slot: Slot::Known,
            number: Some(number),
            adjective: 0,
        })
    }

    fn compared(&mut self, kind: Kind, number: Number) -> NounPhrase {
        self.noun_phrase(Request {
            kinds: &[kind],
            slot: Slot::Known,
            number: Some(number),
            adjective: 0,
        })
    }
}

/// The forms of "to be" that agree with a person.
fn copula(copula: Copula, past: bool, person: Person) -> (&'static str, &'static str) {
    let spanish = match (copula, past) {
        (Copula::Ser, false) => SER,
        (Copula::Ser, true) => SER_PAST,
        (Copula::Estar, false) => ESTAR,
        (Copula::Estar, true) => ESTAR_PAST,
    };
    let english = if past { BE_PAST } else { BE };
    (english[person as usize], spanish[person as usize])
}

/// Subject, "is" or "is not", and the rest.
fn statement(
    form: Form,
    subject: &Bilingual,
    be: &'static str,
    es: &'static str,
    rest: &Bilingual,
) -> Bilingual {
    let mut text = subject.clone();
    if form == Form::Negative {
        text.add_spanish("no");
    }
    text.add(be, es);
    if form == Form::Negative {
        text.add_english("not");
    }
    text.append(rest);
    text
}
