//! The verb with its tense: finite forms, "going to", "want to", "can", their negations and questions.

use super::noun_phrase::NounPhrase;
use super::tense::Tense;
use crate::bilingual::Bilingual;
use crate::lexicon::{BE, BE_PAST, DO, IR, PODER, Person, QUERER, QUERER_PAST, Verb};

/// English "to be", past or present.
pub(super) fn be(tense: Tense, person: Person) -> &'static str {
    match tense {
        Tense::Past => BE_PAST[person as usize],
        _ => BE[person as usize],
    }
}

/// A verb in one tense and person.
pub(super) struct VerbGroup<'a> {
    pub(super) verb: &'a Verb,
    pub(super) tense: Tense,
    pub(super) person: Person,
}

impl VerbGroup<'_> {
    /// "eats" / "come".
    pub(super) fn affirmative(&self) -> Bilingual {
        let [base, third, past] = self.verb.english;
        let singular = self.person == Person::Singular;
        let mut text = self.spanish();
        match self.tense {
            Tense::Present => text.add_english(if singular { third } else { base }),
            Tense::Past => text.add_english(past),
            Tense::WantTo if singular => text.add_english("wants to"),
            Tense::WantTo => text.add_english("want to"),
            Tense::WantedTo => text.add_english("wanted to"),
            Tense::GoingTo | Tense::Can => {
                text.add_english(self.auxiliary());
                if self.tense == Tense::GoingTo {
                    text.add_english("going to");
                }
            }
        }
        if !matches!(self.tense, Tense::Present | Tense::Past) {
            text.add_english(base);
        }
        text
    }

    /// "does not eat" / "no come".
    pub(super) fn negative(&self) -> Bilingual {
        let mut text = Bilingual::default();
        if self.tense == Tense::Can {
            text.add("cannot", "no");
        } else {
            text.add(self.auxiliary(), "no");
            text.add_english("not");
        }
        self.add_after_auxiliary(&mut text);
        text.append(&self.spanish());
        text
    }

    /// "does the girl eat" / "come": the Spanish subject is left for the caller to add.
    pub(super) fn question(&self, subject: &NounPhrase) -> Bilingual {
        let mut text = self.spanish();
        text.add_english(self.auxiliary());
        text.append_english(&subject.text);
        self.add_after_auxiliary(&mut text);
        text
    }

    fn auxiliary(&self) -> &'static str {
        match self.tense {
            Tense::Present | Tense::WantTo => DO[self.person as usize],
            Tense::Past | Tense::WantedTo => "did",
            Tense::GoingTo => be(self.tense, self.person),
            Tense::Can => "can",
        }
    }

    fn add_after_auxiliary(&self, text: &mut Bilingual) {
        match self.tense {
            Tense::Present | Tense::Past | Tense::Can => {}
            Tense::GoingTo => text.add_english("going to"),
            Tense::WantTo | Tense::WantedTo => text.add_english("want to"),
        }
        text.add_english(self.verb.english[0]);
    }

    fn spanish(&self) -> Bilingual {
        let person = self.person as usize;
        let mut text = Bilingual::default();
        let helper = match self.tense {
            Tense::Present => return Bilingual::of("", self.verb.present[person]),
            Tense::Past => return Bilingual::of("", self.verb.past[person]),
            Tense::GoingTo => IR[person],
            Tense::WantTo => QUERER[person],
            Tense::WantedTo => QUERER_PAST[person],
            Tense::Can => PODER[person],
        };
        text.add_spanish(helper);
        if self.tense == Tense::GoingTo {
            text.add_spanish("a");
        }
        text.add_spanish(self.verb.infinitive);
        text
    }
}
