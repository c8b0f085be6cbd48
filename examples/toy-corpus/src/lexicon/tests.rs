//! The tables in `data` are right, and mistakes in them are named.

use super::table::{Named, Row, rows};
use super::*;

#[test]
fn every_table_has_what_sentences_need() {
    for (name, kind) in Kind::NAMES {
        let nouns = NOUNS.iter().filter(|noun| noun.kind == *kind).count();
        // A comparison takes two of a kind.
        assert!(nouns >= 2, "{nouns} nouns of the kind {name}");
    }
    for (name, wanted) in AdverbialUse::NAMES {
        let found = ADVERBIALS.iter().any(|word| word.uses.contains(wanted));
        assert!(found, "no adverbial for the use {name}");
    }
    for (name, role) in Role::NAMES {
        let found = DETERMINERS.iter().any(|word| word.role == *role);
        assert!(found, "no determiner of the role {name}");
    }
    assert!(NAMES.len() >= 2 && !ADJECTIVES.is_empty() && !VERBS.is_empty());
    for alive in [false, true] {
        let mut prepositions = PREPOSITIONS.iter();
        assert!(prepositions.any(|word| !word.landmarks(alive).is_empty()));
    }
}

/// What is wrong with a table.
fn error<R: Row>(text: &'static str) -> String {
    rows::<R>("file.tsv", text)
        .err()
        .expect("the table should be refused")
}

#[test]
fn a_wrong_line_is_named() {
    const NAMES: &str = "english\tspanish\tgender\n";
    let names = |lines: &str| {
        let text: &'static str = format!("{NAMES}{lines}").leak();
        error::<Name>(text)
    };
    assert_eq!(
        names("Ana\tAna\tfeminine\nJuan\tJuan\n"),
        "file.tsv, line 3: the number of cells is 2, not 3"
    );
    assert_eq!(
        names("Ana\t\tfeminine\n"),
        "file.tsv, line 2: spanish is empty instead of \"-\""
    );
    assert_eq!(
        names("Ana\t-\tfeminine\n"),
        "file.tsv, line 2: spanish needs a value"
    );
    assert_eq!(
        names("Ana\tAna\tfemale\n"),
        "file.tsv, line 2: gender has \"female\", which is none of masculine, feminine"
    );
    assert_eq!(
        names("Ana\tAna\tfeminine\nAna\tAnita\tfeminine\n"),
        "file.tsv, line 3: an earlier line has \"Ana\" too"
    );
    assert_eq!(
        error::<Name>("english\tspanish\nAna\tAna\n"),
        "file.tsv, line 2: the first line has no column gender"
    );
}

#[test]
fn words_that_contradict_each_other_are_refused() {
    assert_eq!(
        error::<Noun>(
            "english\tenglish_plural\tspanish\tspanish_plural\tgender\tkind\tpreposition\n\
             tea\tteas\tté\t-\tmasculine\tbrewed\t-\n"
        ),
        "file.tsv, line 2: english_plural is \"teas\", but a mass noun has no plural"
    );
    const DETERMINERS: &str = "english\tenglish_plural\tmasculine\tfeminine\tmasculine_plural\t\
                               feminine_plural\trole\tweight\n";
    let determiners = |line: &str| error::<Determiner>(format!("{DETERMINERS}{line}").leak());
    assert_eq!(
        determiners("a\t-\tun\tuna\tunos\t-\tindefinite\t16\n"),
        "file.tsv, line 2: masculine_plural is \"unos\", but there is no English word for this number"
    );
    assert_eq!(
        determiners("-\t-\tel\t-\t-\t-\tbare\t14\n"),
        "file.tsv, line 2: masculine is \"el\", but a bare noun has no determiner"
    );
    assert_eq!(
        determiners("a\t-\tun\tuna\t-\t-\tindefinite\t0\n"),
        "file.tsv, line 2: weight is \"0\", not a whole number from 1 to 1000"
    );
    const VERBS: &str = "objects\tanimal_objects\tplaces\tproperties\n";
    let verbs = |line: &str| {
        let text = format!("english\t{VERBS}see\t{line}");
        error::<Verb>(text.leak())
    };
    assert_eq!(
        verbs("animal\tanimal\t-\t-\n"),
        "file.tsv, line 2: animal_objects is \"animal\", but the properties do not have \"animals\""
    );
    assert_eq!(
        verbs("animal\t-\t-\tanimals\n"),
        "file.tsv, line 2: animal_objects needs a value"
    );
    assert_eq!(
        verbs("-\tanimal\t-\tanimals\n"),
        "file.tsv, line 2: animal_objects is \"animal\", but the verb has no objects"
    );
}
