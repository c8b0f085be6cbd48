//! Verbs: every form is written out, regular or not.

use super::Kind;
use super::table::{Line, Row, Table, named, table};

/// Every verb that a clause is made of.
pub(crate) static VERBS: Table<Verb> = table!("verbs.tsv");

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
        Animals = "animals",
        /// It goes to a place: "to" and "a" instead of "in" and "en".
        Motion = "motion",
        /// "with my sister" may follow.
        WithCompany = "with_company",
        /// "for my sister" may follow.
        ForSomeone = "for_someone",
        /// Nobody wants to do it.
        Accident = "accident",
        /// A state, without times, and its objects are not yet known ("has a dog").
        Possession = "possession",
    }
}

impl Row for Verb {
    fn read(line: &Line) -> Result<Self, String> {
        let persons = |tense| {
            let columns =
                ["i", "you", "he", "we", "they"].map(|person| format!("{tense}_{person}"));
            line.words(columns.each_ref().map(String::as_str))
        };
        let objects = line.any("objects")?;
        let properties = line.any("properties")?;
        let animal_objects = if !properties.contains(&Property::Animals) {
            line.absent("animal_objects", "the properties do not have \"animals\"")?;
            Vec::new()
        } else if objects.is_empty() {
            line.absent("animal_objects", "the verb has no objects")?;
            Vec::new()
        } else {
            line.some("animal_objects")?
        };
        Ok(Self {
            english: line.words(["english", "english_he", "english_past"])?,
            infinitive: line.word("infinitive")?,
            present: persons("present")?,
            past: persons("past")?,
            objects,
            animal_objects,
            places: line.any("places")?,
            properties,
        })
    }
}

impl Verb {
    pub(crate) fn has(&self, property: Property) -> bool {
        self.properties.contains(&property)
    }

    /// The English past looks like the base form, so a statement in the past always has a time.
    pub(crate) fn past_needs_time(&self) -> bool {
        let [base, _, past] = self.english;
        base == past
    }
}
