//! Verbs: every form is written out, regular or not.

use std::sync::LazyLock;

use super::Kind;
use super::table::{Table, named, rows};

/// Every verb that a clause is made of.
pub(crate) static VERBS: Table<Verb> = LazyLock::new(|| {
    rows(include_str!("../../data/verbs.tsv"), |cells: [_; 18]| {
        let [objects, animal_objects, places] = [14, 15, 16].map(|cell| Kind::named(cells[cell]));
        let persons = |first| std::array::from_fn(|person| cells[first + person]);
        Verb {
            english: [cells[0], cells[1], cells[2]],
            infinitive: cells[3],
            present: persons(4),
            past: persons(9),
            objects,
            animal_objects,
            places,
            properties: Property::named(cells[17]),
        }
    })
});

/// A verb with all its forms and what may stand around it.
#[derive(Debug)]
pub(crate) struct Verb {
    /// Base form, third person singular, past.
    pub(crate) english: [&'static str; 3],
    pub(crate) infinitive: &'static str,
    pub(crate) present: [&'static str; 5],
    /// The preterite; for "tener" the imperfect, as Spanish speakers use it for what lasts.
    pub(crate) past: [&'static str; 5],
    /// Kinds of its direct object; empty for an intransitive verb.
    pub(crate) objects: Vec<Kind>,
    /// Kinds of its object when an animal is the subject.
    pub(crate) animal_objects: Vec<Kind>,
    /// Kinds of places where, or to which, it happens.
    pub(crate) places: Vec<Kind>,
    properties: Vec<Property>,
}

named! {
    /// What some verbs have in common.
    Property {
        /// Animals do it too.
        Animals,
        /// It goes to a place: "to" and "a" instead of "in" and "en".
        Motion,
        /// "with my sister" may follow.
        Company,
        /// "for my sister" may follow.
        Beneficiary,
        /// Nobody wants to do it.
        Accident,
        /// A state, without times, and its objects are not yet known ("has a dog").
        Possession,
    }
}

impl Verb {
    pub(crate) fn has(&self, property: Property) -> bool {
        self.properties.contains(&property)
    }

    /// The chance of a place: always with motion, `alone` without an object, and `with_object` otherwise.
    pub(crate) fn chance_of_place(&self, alone: usize, with_object: usize) -> usize {
        match (self.has(Property::Motion), self.objects.is_empty()) {
            (true, _) => 100,
            (false, true) => alone,
            (false, false) => with_object,
        }
    }

    /// The English past looks like the base form, so a statement in the past always has a time.
    pub(crate) fn past_needs_time(&self) -> bool {
        let [base, _, past] = self.english;
        base == past
    }
}
