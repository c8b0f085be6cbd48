//! "To like", which Spanish turns around: the subject of "gustar" is what is liked.

use super::clause::subject_slot;
use super::noun_phrase::{Request, Slot};
use super::{Composer, Form, PEOPLE};
use crate::bilingual::{Bilingual, Mark};
use crate::lexicon::{DATIVE, DO, Kind, Number, Person, Property, VERBS};

/// What people like.
const LIKED: &[Kind] = &[
    Kind::Animal,
    Kind::Fruit,
    Kind::Sweet,
    Kind::Staple,
    Kind::Meat,
    Kind::Cooked,
    Kind::Brewed,
    Kind::Text,
    Kind::Clothing,
    Kind::Vehicle,
    Kind::Plant,
    Kind::Home,
    Kind::Public,
    Kind::Shop,
    Kind::Shore,
    Kind::Town,
];

impl Composer {
    /// "The girl likes the cats." / "A la niña le gustan los gatos."
    pub(super) fn liking(&mut self) -> (Bilingual, Mark) {
        let person = self.person();
        let form = self.draw.weighted(&[
            (55, Form::Affirmative),
            (22, Form::Negative),
            (23, Form::YesOrNo),
        ]);
        let subject = self.subject(person, PEOPLE, subject_slot(form));
        let (liked, gusta) = if self.draw.percent(25) {
            (self.activity(), "gusta")
        } else {
            let liked = self.noun_phrase(Request {
                kinds: LIKED,
                slot: Slot::Known,
                number: None,
                adjective: 40,
            });
            let gusta = match liked.number {
                Number::Singular => "gusta",
                Number::Plural => "gustan",
            };
            (liked.text, gusta)
        };
        let mut experiencer = Bilingual::default();
        if matches!(person, Person::Singular | Person::Plural) {
            experiencer.add_spanish("a");
            experiencer.append_spanish(&subject.text);
        }
        let mut text = Bilingual::default();
        match form {
            Form::Affirmative => {
                text.append_english(&subject.text);
                text.add_english(if person == Person::Singular {
                    "likes"
                } else {
                    "like"
                });
                text.append_spanish(&experiencer);
            }
            Form::Negative => {
                text.append_english(&subject.text);
                text.add_english(DO[person as usize]);
                text.add_english("not like");
                text.append_spanish(&experiencer);
                text.add_spanish("no");
            }
            Form::YesOrNo | Form::Wh => {
                text.add_english(DO[person as usize]);
                text.append_english(&subject.text);
                text.add_english("like");
            }
        }
        text.add_spanish(DATIVE[person as usize]);
        text.add_spanish(gusta);
        if form == Form::YesOrNo {
            text.append_spanish(&experiencer);
        }
        text.append(&liked);
        (text, form.mark())
    }

    /// "to swim at the lake" / "nadar en el lago".
    fn activity(&mut self) -> Bilingual {
        let activities: Vec<usize> = (0..VERBS.len())
            .filter(|&index| VERBS[index].objects.is_empty() && !VERBS[index].has(Property::Motion))
            .collect();
        let verb = &VERBS[self.draw.pick(&activities)];
        let mut text = Bilingual::of("to", "");
        text.add(verb.english[0], verb.infinitive);
        text.append(&self.place_of(verb, Kind::Adult, 70));
        text
    }
}
