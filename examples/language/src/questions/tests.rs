use std::fs;

use super::*;

#[test]
fn answers_are_scored_as_in_squad() {
    let scores = |found, right| {
        let scores = AnswerScores::of([(found, right)]);
        (scores.exact_match, scores.f1)
    };
    assert_eq!(scores("The red hat.", "a red  hat"), (1.0, 1.0));
    // Two of three words are common, of two.
    assert_eq!(scores("her red hat", "the red hat"), (0.0, 0.8));
    assert_eq!(scores("on on on", "on"), (0.0, 0.5));
    assert_eq!(scores("blue", "the red hat"), (0.0, 0.0));
    // As in SQuAD 1.1.
    assert_eq!(scores("the", "a"), (1.0, 0.0));
    let both = AnswerScores::of([("blue", "red"), ("red", "red")]);
    assert_eq!(
        both,
        AnswerScores {
            questions: 2,
            exact_match: 0.5,
            f1: 0.5
        }
    );
}

#[test]
fn the_passages_of_this_repository_hold_their_answers() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/passages.tsv");
    let passages = read(&path).unwrap();
    assert_eq!(passages.len(), 50);
}

#[test]
fn bad_lines_are_counted_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("passages.tsv");
    fs::write(
        &path,
        "A cat eats.\tWho eats?\tA cat\nA cat\tWho?\tA dog\nA\tb\nA\tWho?\t\nA\t\tA\n",
    )
    .unwrap();
    let sentence = format!(
        "{}: lines 2, 3, 4, 5 are not a passage, a question and an answer that is in the passage, with tabs between them",
        path.display()
    );
    let error = || read(&path).unwrap_err().to_string();
    assert_eq!(error(), sentence);
    fs::write(&path, "").unwrap();
    assert_eq!(
        error(),
        format!("there are no passages in {}", path.display())
    );
}

#[test]
fn stories_are_questions_with_answers() {
    let examples = of_stories(1, 30);
    assert!(examples.len() > 90);
    let example = &examples[0];
    assert!(example.question.ends_with('?') && !example.answer().is_empty());
}
