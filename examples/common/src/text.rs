//! Texts of strangers, shown in a terminal.

use std::sync::LazyLock;

use regex::Regex;

/// What moves the cursor, begins an escape sequence or reorders a line.
static UNPRINTABLE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"[[\p{Cc}--\t]\p{Zl}\p{Zp}\p{Bidi_Control}]").expect("the pattern is valid")
});

/// A line of at most `longest` characters, of which a longer text ends in `…`. Line ends, escape sequences and whatever else a terminal would
/// obey become U+FFFD; tabs stay.
pub fn printable(text: &str, longest: usize) -> String {
    let mut cut = text.to_string();
    if let Some((end, _)) = text.char_indices().nth(longest) {
        let last = text[..end].char_indices().next_back();
        cut.truncate(last.map_or(0, |(last, _)| last));
        cut.push('…');
    }
    UNPRINTABLE.replace_all(&cut, "\u{fffd}").into_owned()
}

/// The same for a text of several lines, or a piece of one, however long: its line ends stay, as line feeds.
pub fn printable_lines(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let lines: Vec<String> = text
        .split('\n')
        .map(|line| printable(line, usize::MAX))
        .collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
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
}
