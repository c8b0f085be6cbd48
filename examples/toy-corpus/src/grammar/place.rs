//! Places: where something happens, where someone or something is.

use super::Composer;
use super::noun_phrase::{NounPhrase, Request, Slot};
use crate::bilingual::Bilingual;
use crate::lexicon::{Kind, NOUNS, Number, PREPOSITIONS};

/// Where animals are.
pub(super) const OUTDOORS: &[Kind] = &[Kind::Home, Kind::Shore, Kind::Town];
/// Every kind of place.
const PLACES: &[Kind] = &[
    Kind::Home,
    Kind::Public,
    Kind::Shop,
    Kind::Shore,
    Kind::Town,
];

impl Composer {
    /// "in the kitchen".
    pub(super) fn inside(&mut self, kinds: &[Kind]) -> Bilingual {
        let place = self.place(kinds);
        let preposition = place.noun.and_then(|noun| NOUNS[noun].preposition);
        let mut text = Bilingual::of(preposition.unwrap_or("in"), "en");
        text.append(&place.text);
        text
    }

    /// A place, as a noun phrase.
    pub(super) fn place(&mut self, kinds: &[Kind]) -> NounPhrase {
        self.noun_phrase(Request {
            kinds,
            slot: Slot::Known,
            number: Some(Number::Singular),
            adjective: 12,
        })
    }

    /// Where someone (an animal too) or something of this kind may be.
    pub(super) fn whereabouts(&mut self, kind: Kind) -> Bilingual {
        let alive = kind.is_human() || kind == Kind::Animal;
        if alive && self.draw.percent(65) {
            return self.inside(if kind == Kind::Animal {
                OUTDOORS
            } else {
                PLACES
            });
        }
        let carried = matches!(
            kind,
            Kind::Fruit | Kind::Produce | Kind::Text | Kind::Clothing | Kind::Small
        );
        let (english, spanish, kinds) = if carried && self.draw.percent(30) {
            ("in", "en", [Kind::Vessel].as_slice())
        } else {
            let candidates: Vec<_> = PREPOSITIONS
                .iter()
                .map(|word| (word.english, word.spanish, word.landmarks(alive)))
                .filter(|(.., landmarks)| !landmarks.is_empty())
                .collect();
            self.draw.pick(&candidates)
        };
        let mut text = Bilingual::of(english, spanish);
        let landmark = self.noun_phrase(Request {
            kinds,
            slot: Slot::Known,
            number: Some(Number::Singular),
            adjective: 12,
        });
        text.append(&landmark.text);
        text
    }
}
