//! Token labels: made printable, measured in columns, and fitted into a given width.

use std::iter::{once, repeat_n};

/// `token` with every character that would move the cursor, reorder the line or print nothing replaced by a visible one.
///
/// A newline token becomes `␊`, a tab `␉`; an escape sequence in a token cannot reach the terminal. The zero-width joiner and non-joiner stay:
/// scripts and emoji are written with them.
pub(crate) fn printable(token: &str) -> String {
    token
        .chars()
        .map(|character| match character {
            '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(character)).unwrap_or('\u{fffd}'),
            '\u{7f}' => '␡',
            '\u{80}'..='\u{9f}'
            | '\u{61c}'
            | '\u{200b}'
            | '\u{200e}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'
            | '\u{feff}'
            | '\u{2066}'..='\u{2069}'
            | '\u{fffe}'
            | '\u{ffff}' => '\u{fffd}',
            _ => character,
        })
        .collect()
}

/// The number of terminal columns that `text` takes.
///
/// Combining marks take none, East Asian wide characters and emoji two. Sequences that a terminal may join into one
/// emoji are counted as their parts.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(character_width).sum()
}

/// `text` padded with spaces, or cut and ended with `…`, to take exactly `columns`.
pub(crate) fn fit(text: &str, columns: usize) -> String {
    let cut = cut(text, columns);
    let missing = columns - width(&cut);
    cut.chars().chain(repeat_n(' ', missing)).collect()
}

/// `text`, cut and ended with `…` if it takes more than `columns`.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut used = 0;
    text.chars()
        .take_while(|&character| {
            used += character_width(character);
            used < columns
        })
        .chain(once('…').take(columns))
        .collect()
}

fn character_width(character: char) -> usize {
    match u32::from(character) {
        // Combining marks, vowel signs above and below, joiners, variation selectors, medial and final jamo.
        0x0300..=0x036f
        | 0x0483..=0x0489
        | 0x0591..=0x05bd
        | 0x0610..=0x061a
        | 0x064b..=0x065f
        | 0x0670
        | 0x06d6..=0x06dc
        | 0x0900..=0x0902
        | 0x093c
        | 0x0941..=0x0948
        | 0x094d
        | 0x0e31
        | 0x0e34..=0x0e3a
        | 0x0e47..=0x0e4e
        | 0x1160..=0x11ff
        | 0x1ab0..=0x1aff
        | 0x1dc0..=0x1dff
        | 0x200b..=0x200f
        | 0x2060
        | 0x20d0..=0x20ff
        | 0x302a..=0x302d
        | 0x3099..=0x309a
        | 0xfe00..=0xfe0f
        | 0xfe20..=0xfe2f
        | 0xfeff
        | 0xe0100..=0xe01ef => 0,
        // East Asian Width "wide" and "fullwidth" (Unicode Standard Annex 11), by block.
        0x1100..=0x115f
        | 0x231a..=0x231b
        | 0x23e9..=0x23ec
        | 0x2e80..=0x303e
        | 0x3041..=0xa4cf
        | 0xa960..=0xa97f
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1f64f
        | 0x1f680..=0x1f6ff
        | 0x1f900..=0x1f9ff
        | 0x1fa70..=0x1faff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn width_counts_columns_not_characters() {
        assert_eq!(width("chat"), 4);
        assert_eq!(width("été"), 3);
        assert_eq!(width("e\u{301}te\u{301}"), 3);
        assert_eq!(width("東京"), 4);
        assert_eq!(width("🦀"), 2);
        assert_eq!(width(""), 0);
    }

    #[test]
    fn fit_always_takes_the_columns_asked_for() {
        for text in ["", "a", "abcdef", "東京タワー", "e\u{301}te\u{301}", "🦀🦀"] {
            for columns in 0..8 {
                assert_eq!(width(&fit(text, columns)), columns, "{text:?} in {columns}");
            }
        }
        assert_eq!(fit("translation", 6), "trans…");
        assert_eq!(fit("東京タワー", 6), "東京… ");
        assert_eq!(fit("le", 4), "le  ");
    }

    #[test]
    fn printable_shows_control_characters_and_lets_none_through() {
        assert_eq!(printable("a\nb\tc"), "a␊b␉c");
        assert_eq!(printable("\u{1b}[31m"), "␛[31m");
        assert_eq!(
            printable("\u{9b}\u{202e}\u{2028}"),
            "\u{fffd}\u{fffd}\u{fffd}"
        );
        assert_eq!(printable("▁été"), "▁été");
    }
}
