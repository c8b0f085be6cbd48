use std::fs;

use super::*;

#[test]
fn every_fifth_review_is_held_out() {
    let reviews = (1..=11).map(|number| Review {
        score: 0.0,
        text: number.to_string(),
    });
    let (train, held_out) = split(reviews.collect());
    let texts = |reviews: &[Review]| -> Vec<String> {
        reviews.iter().map(|review| review.text.clone()).collect()
    };
    assert_eq!(texts(&held_out), ["5", "10"]);
    assert_eq!(texts(&train).len(), 9);
}

#[test]
fn bad_lines_are_counted_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reviews.tsv");
    let read = |text: &str| {
        fs::write(&path, text).unwrap();
        read(&path).map_err(|error| error.to_string())
    };
    let good = "1\t2.5\tgood film\n".repeat(5);
    assert_eq!(read(&good).unwrap().len(), 5);
    let bad = "1\tgood\tx\n\n3\t5\tx\n4\t1\t \n5\tnan\tx\n6\n7\t1\tfine\n";
    let sentence = format!(
        "{}: 6 lines are not an ID, a score from -4 to 4 and a text with tabs between them: 6, 7, 8, 9, 10, ...",
        path.display()
    );
    assert_eq!(read(&format!("{good}{bad}")), Err(sentence));
    let sentence = format!(
        "{}: at least 5 reviews are needed, of which every fifth is held out, got 1",
        path.display()
    );
    assert_eq!(read("1\t2\tx\n"), Err(sentence));
}
