//! Texts and lines that a user gives.

use super::*;

#[test]
fn a_byte_order_mark_is_no_part_of_a_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text.tsv");
    fs::write(&path, "\u{feff}a\nb\u{feff}\n").unwrap();
    let lines = lines(&path, |line| Some(line.to_string()), "a line").unwrap();
    assert_eq!(lines, ["a", "b\u{feff}"]);
}
