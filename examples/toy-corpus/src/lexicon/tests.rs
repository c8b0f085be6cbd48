//! The tables in `data` are right.

use std::collections::BTreeSet;
use std::fmt::Debug;

use super::*;

#[test]
fn every_table_has_what_sentences_need() {
    for kind in Kind::ALL {
        let nouns = NOUNS.iter().filter(|noun| noun.kind == *kind).count();
        // A sentence has no noun twice.
        assert!(nouns >= 2, "{nouns} nouns of the kind {kind:?}");
    }
    for usage in AdverbialUse::ALL {
        let found = ADVERBIALS.iter().any(|word| word.usage == *usage);
        assert!(found, "no adverbial for the use {usage:?}");
    }
    for role in Role::ALL {
        let found = DETERMINERS.iter().any(|word| word.role == *role);
        assert!(found, "no determiner of the role {role:?}");
    }
    assert!(NAMES.len() >= 2 && !ADJECTIVES.is_empty() && !VERBS.is_empty());
    for alive in [0, 1] {
        let mut prepositions = PREPOSITIONS.iter();
        assert!(prepositions.any(|word| !word.landmarks[alive].is_empty()));
    }
}

#[test]
fn no_word_is_there_twice() {
    fn different<T: Ord + Debug>(words: impl Iterator<Item = T>) {
        let mut known = BTreeSet::new();
        for word in words {
            assert!(!known.contains(&word), "{word:?}");
            known.insert(word);
        }
    }
    different(NOUNS.iter().map(|word| word.english[0]));
    different(ADJECTIVES.iter().map(|word| word.english));
    different(VERBS.iter().map(|word| word.english[0]));
    different(ADVERBIALS.iter().map(|word| word.english));
    different(NAMES.iter().map(|word| word.english));
    different(PREPOSITIONS.iter().map(|word| word.english));
    different(DETERMINERS.iter().map(|word| word.english));
}

#[test]
fn the_cells_of_a_line_agree() {
    for noun in NOUNS.iter() {
        for [singular, plural] in [noun.english, noun.spanish] {
            assert!(!singular.is_empty(), "{noun:?}");
            assert_eq!(plural.is_empty(), noun.kind.is_mass(), "{noun:?}");
        }
    }
    for adjective in ADJECTIVES.iter() {
        let forms = adjective.spanish.iter().chain(&adjective.before_noun);
        let mut forms = forms.chain([&adjective.english]);
        assert!(forms.all(|form| !form.is_empty()), "{adjective:?}");
        assert!(!adjective.kinds.is_empty(), "{adjective:?}");
    }
    for determiner in DETERMINERS.iter() {
        for (english, spanish) in determiner.english.iter().zip(determiner.spanish) {
            let is_bare = determiner.role == Role::Bare;
            assert_eq!(*english == Some(""), is_bare, "{determiner:?}");
            let without = is_bare || english.is_none();
            let mut spanish = spanish.iter();
            assert!(
                spanish.all(|form| form.is_empty() == without),
                "{determiner:?}"
            );
        }
        assert!((1..=1000).contains(&determiner.weight), "{determiner:?}");
    }
    for verb in VERBS.iter() {
        let forms = [&verb.english[..], &verb.present, &verb.past].concat();
        assert!(
            !forms.contains(&"") && !verb.infinitive.is_empty(),
            "{verb:?}"
        );
        let of_animals = verb.has(Property::Animals) && !verb.objects.is_empty();
        assert_eq!(verb.animal_objects.is_empty(), !of_animals, "{verb:?}");
    }
}
