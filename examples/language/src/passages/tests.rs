use super::*;

#[test]
fn blank_lines_divide_paragraphs() {
    let text = "\n  \nA cat\nsleeps.\n\nA dog.\n \n\nA bird";
    let expected = [(3, "A cat\nsleeps."), (6, "A dog."), (9, "A bird")];
    assert_eq!(paragraphs(text), expected);
    assert!(paragraphs(" \n\n").is_empty());
    assert_eq!(paragraphs("one\r\n\r\ntwo\r\n"), [(1, "one"), (3, "two")]);
}

#[test]
fn pieces_begin_with_words() {
    let words = [0, 0, 1, 2, 2, 2, 3].map(Some);
    assert_eq!(beginnings(&words, 7), [0]);
    assert_eq!(beginnings(&words, 4), [0, 3]);
    // A word longer than a piece is divided.
    assert_eq!(beginnings(&words, 2), [0, 2, 3, 5]);
    assert_eq!(beginnings(&[None, None, None], 2), [0, 2]);
    assert!(beginnings(&[], 2).is_empty());
}
