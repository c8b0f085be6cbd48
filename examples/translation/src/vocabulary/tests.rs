//! Texts survive a round trip, and labels tell words from their continuations.

use super::*;

const TEXTS: [&str; 4] = [
    "the dog sleeps .",
    "the dog runs .",
    "el perro duerme .",
    "el niño corre .",
];

#[test]
fn any_text_survives_a_round_trip() {
    let vocabulary = Vocabulary::train(&TEXTS, 300).unwrap();
    for text in ["the dog sleeps .", "¿Qué? 猫 <bos> <unk>", "tab\there"] {
        let tokens = vocabulary.encode(text).unwrap();
        assert!(tokens.iter().all(|&token| token > 3), "{text}: {tokens:?}");
        assert_eq!(vocabulary.decode(&tokens).unwrap(), text);
    }
    assert!(vocabulary.len() <= 300);
    let all = Vocabulary::train(&TEXTS, usize::MAX).unwrap();
    assert_eq!(all.to_json().unwrap(), vocabulary.to_json().unwrap());
}

#[test]
fn saving_keeps_every_id() {
    let vocabulary = Vocabulary::train(&TEXTS, 300).unwrap();
    let json = vocabulary.to_json().unwrap();
    let again = Vocabulary::from_json(json.as_bytes()).unwrap();
    assert_eq!(
        again.encode("el niño duerme .").unwrap(),
        vocabulary.encode("el niño duerme .").unwrap()
    );
    assert!(Vocabulary::from_json(&json.as_bytes()[..99]).is_err());
}

#[test]
fn a_word_and_its_continuation_look_different() {
    let vocabulary = Vocabulary::train(&TEXTS, 300).unwrap();
    let tokens = vocabulary.encode("the dogs").unwrap();
    assert_eq!(vocabulary.labels(&tokens), ["the", "dog", "·s"]);
    assert_eq!(vocabulary.labels(&[BOS, EOS]), ["<bos>", "<eos>"]);
    let spaces = vocabulary.encode("a  b").unwrap();
    assert_eq!(vocabulary.labels(&spaces), ["␠", "·a", "␠", "␠", "·b"]);
    // The parts of a character.
    let parts = vocabulary.encode("猫").unwrap();
    assert_eq!(
        vocabulary.labels(&parts),
        ["␠", "·\u{fffd}", "·\u{fffd}", "·\u{fffd}"]
    );
}
