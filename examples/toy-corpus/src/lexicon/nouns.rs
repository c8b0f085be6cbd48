//! Nouns.

use super::Gender;
use super::table::{Line, Row, Table, named, table};

/// Every noun.
pub(crate) static NOUNS: Table<Noun> = table!("nouns.tsv");

/// A noun: `[singular, plural]` in both languages.
#[derive(Debug)]
pub(crate) struct Noun {
    pub(crate) english: [&'static str; 2],
    pub(crate) spanish: [&'static str; 2],
    pub(crate) gender: Gender,
    pub(crate) kind: Kind,
    /// The English preposition for being there (Spanish always has "en"), for places.
    pub(crate) preposition: Option<&'static str>,
}

impl Row for Noun {
    fn read(line: &Line) -> Result<Self, String> {
        let kind: Kind = line.one("kind")?;
        let forms = |singular, plural| {
            if !kind.is_mass() {
                return line.words([singular, plural]);
            }
            line.absent(plural, "a mass noun has no plural")?;
            line.words([singular, singular])
        };
        Ok(Self {
            english: forms("english", "english_plural")?,
            spanish: forms("spanish", "spanish_plural")?,
            gender: line.one("gender")?,
            kind,
            preposition: line.optional("preposition")?,
        })
    }
}

named! {
    /// What a noun means, as far as verbs and adjectives care.
    Kind {
        Child = "child",
        Adult = "adult",
        Kin = "kin",
        Animal = "animal",
        Fruit = "fruit",
        Produce = "produce",
        Sweet = "sweet",
        Staple = "staple",
        Meat = "meat",
        Cooked = "cooked",
        Plain = "plain",
        Brewed = "brewed",
        Text = "text",
        Clothing = "clothing",
        Vessel = "vessel",
        Fragile = "fragile",
        Furniture = "furniture",
        Opening = "opening",
        Vehicle = "vehicle",
        Small = "small",
        Plant = "plant",
        Home = "home",
        Public = "public",
        Shop = "shop",
        Shore = "shore",
        Town = "town",
    }
}

impl Kind {
    /// Mass nouns have no plural and take no "a".
    pub(crate) fn is_mass(self) -> bool {
        use Kind::{Brewed, Cooked, Meat, Plain, Staple};
        matches!(self, Staple | Meat | Cooked | Plain | Brewed)
    }

    /// Human objects take the personal "a" in Spanish.
    pub(crate) fn is_human(self) -> bool {
        matches!(self, Kind::Child | Kind::Adult | Kind::Kin)
    }

    /// What people call theirs.
    pub(crate) fn is_owned(self) -> bool {
        use Kind::{Adult, Child, Plant, Public, Shop, Shore, Town};
        !matches!(self, Child | Adult | Plant | Public | Shop | Shore | Town)
    }
}
