//! Every answer is in its story, and no question has two.

use std::collections::BTreeSet;

use crate::Story;
use crate::lexicon::{Gender, NOUNS};
use crate::tests::fnv1a;

#[test]
fn nouns_of_people_have_their_gender() {
    let women = "girl woman queen actress sister aunt grandmother";
    for noun in NOUNS.iter().filter(|noun| noun.kind.is_human()) {
        let is_woman = women.split(' ').any(|word| word == noun.english[0]);
        assert_eq!(noun.gender == Gender::Feminine, is_woman, "{noun:?}");
    }
}

#[test]
fn answers_are_whole_words_of_the_story() {
    let stories = Story::generate(1, 500);
    let mut beginnings = BTreeSet::new();
    for Story { text, questions } in &stories {
        assert!((4..=7).contains(&text.matches('.').count()), "{text}");
        assert!(questions.len() <= 4, "{text}");
        let different: BTreeSet<_> = questions.iter().map(|question| &question.text).collect();
        assert_eq!(different.len(), questions.len(), "{text}: {questions:?}");
        for question in questions {
            assert!(!question.text.contains("  ") && !question.text.contains(" ?"));
            let (before, rest) = text.split_at(question.answer.start);
            let (answer, after) = rest.split_at(question.answer.len());
            assert!(
                before.is_empty() || before.ends_with(' '),
                "{text}: {question:?}"
            );
            assert!(after.starts_with([' ', '.']), "{text}: {question:?}");
            let is_a_phrase = answer.starts_with(char::is_alphabetic)
                && answer.ends_with(char::is_alphabetic)
                && !answer.contains('.');
            assert!(is_a_phrase, "{answer:?} in {text}");
            beginnings.insert(question.text.split(' ').next().unwrap());
        }
    }
    let all = ["How", "What", "When", "Where", "Which", "Who", "Why"];
    assert_eq!(beginnings, all.into());
    let questions = stories.iter().map(|story| story.questions.len());
    assert!(questions.sum::<usize>() > 1800);
}

#[test]
fn who_does_something_with_someone_is_asked_with_both() {
    let mut asked = 0;
    for Story { text, questions } in Story::generate(4, 300) {
        for question in &questions {
            let mut words = question.text.split([' ', '?']);
            let (Some("Who"), Some(verb)) = (words.next(), words.next()) else {
                continue;
            };
            if verb == "is" {
                continue;
            }
            let answer = &text[question.answer.clone()];
            let of_answer = format!("{answer} {verb} ");
            let with_others = (text.split('.'))
                .any(|sentence| sentence.contains(&of_answer) && sentence.contains(" with "));
            if with_others {
                assert!(question.text.contains(" with "), "{text} {question:?}");
                asked += 1;
            }
        }
    }
    assert!(asked > 10, "{asked}");
}

#[test]
fn a_seed_gives_the_same_stories() {
    assert_eq!(Story::generate(2, 20), Story::generate(2, 20));
    assert_ne!(Story::generate(2, 20), Story::generate(3, 20));
    // A longer list begins with the shorter one.
    assert_eq!(Story::generate(2, 30)[..20], Story::generate(2, 20));
    // The stories that `answer` holds out and evaluates on.
    let mut held_out = String::new();
    for Story { text, questions } in Story::generate(u64::MAX, 200) {
        held_out += &text;
        held_out.extend(questions.iter().map(|question| question.text.as_str()));
    }
    let hash = fnv1a(&held_out);
    assert_eq!(hash, 0x9b6e_ce43_8bc9_1d84, "{hash:#018x}");
}
