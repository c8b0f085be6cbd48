//! Which characters reach a terminal.

use super::*;

#[test]
fn lines_stay_lines() {
    assert_eq!(
        printable_lines("\na\r\n\tb\u{1b}[2Jc\rd\n"),
        "\na\n\tb\u{fffd}[2Jc\u{fffd}d\n"
    );
    assert_eq!(printable_lines(""), "");
}

#[test]
fn a_line_end_may_come_in_two_pieces() {
    let mut pieces = Pieces::default();
    let printed = ["a\r", "\nb\r", "", "c\r", "\r\n", "\r"].map(|piece| pieces.printable(piece));
    assert_eq!(printed.concat(), "a\nb\u{fffd}c\u{fffd}\n");
}

#[test]
fn no_text_reaches_the_terminal_as_a_command() {
    assert_eq!(
        printable("a\r\n\u{1b}[31mb\u{9b}\u{202e}\u{2028}\tc", 99),
        "a\u{fffd}\u{fffd}\u{fffd}[31mb\u{fffd}\u{fffd}\u{fffd}\tc"
    );
    for text in ["niño", "nin\u{303}o", "\u{1f469}\u{200d}\u{1f52c}"] {
        assert_eq!(printable(text, 5), text);
    }
}

#[test]
fn a_long_text_is_cut() {
    assert_eq!(printable(&"ñ".repeat(7), 7), "ñ".repeat(7));
    assert_eq!(printable(&"ñ".repeat(8), 7), "ññññññ…");
    assert_eq!(printable("ab", 1), "…");
}
