//! What counts as right.

use super::*;

#[test]
fn any_reference_counts() {
    let example = |references: &[&str]| Example {
        source: String::new(),
        references: references.iter().map(ToString::to_string).collect(),
    };
    let examples = [
        example(&["Ve tú a casa .", "Vete a casa ya ."]),
        example(&["No ."]),
    ];
    let score = score(&["Vete a casa ya .".into(), "Sí .".into()], &examples);
    assert_eq!((score.sentences, score.exact), (2, 0.5));
    assert!(score.bleu > 0.0);
}

#[test]
fn another_composition_of_letters_is_as_right() {
    let reference = "El nin\u{303}o duerme ya .";
    let examples = [Example {
        source: String::new(),
        references: vec![reference.into()],
    }];
    let score = score(&["El\u{a0}ni\u{f1}o du\u{ad}erme ya .".into()], &examples);
    assert_eq!(score.exact, 1.0);
    assert!((score.bleu - 100.0).abs() < 1e-9, "{}", score.bleu);
}
