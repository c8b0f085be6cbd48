//! Token labels: made visible, measured in columns, and fitted into a given width.

use std::iter::{once, repeat_n};

use unicode_width::UnicodeWidthChar;

/// What a picture calls `token`: [`printable`], and something to see where that prints nothing.
///
/// White space at the ends becomes `␠`, a token without characters `∅`; a mark that combines with a letter before it stands on a dotted circle if there is none.
pub(crate) fn label(token: &str) -> String {
    if token.is_empty() {
        return "∅".into();
    }
    let mut label = printable(token);
    let ends = |label: &str| {
        let trimmed = label.trim_matches(is_blank);
        let start = label.len() - label.trim_start_matches(is_blank).len();
        start..start + trimmed.len()
    };
    let inside = ends(&label);
    let spaces = |text: &str| "␠".repeat(text.chars().count());
    let (before, after) = (spaces(&label[..inside.start]), spaces(&label[inside.end..]));
    label = format!("{before}{}{after}", &label[inside]);
    match label.chars().next() {
        Some(first) if character_width(first) == 0 => format!("◌{label}"),
        _ => label,
    }
}

/// `text` with every character that would move the cursor, reorder the line or print nothing replaced by a visible one.
///
/// A newline becomes `␊`, a tab `␉`; an escape sequence in a token cannot reach the terminal. Joiners and variation selectors stay behind another character:
/// scripts and emoji are written with them. White space stays as well.
pub(crate) fn printable(text: &str) -> String {
    let mut is_first = true;
    let visible = text.chars().map(|character| {
        let is_alone = std::mem::replace(&mut is_first, false);
        match character {
            '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(character)).unwrap_or('\u{fffd}'),
            '\u{7f}' => '␡',
            '\u{80}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{fff9}'..='\u{fffb}' => '\u{fffd}',
            _ if joins(character) && !is_alone => character,
            _ if is_ignorable(character) || is_noncharacter(character) => '\u{fffd}',
            _ => character,
        }
    });
    visible.collect()
}

/// White space, and a braille cell without dots.
fn is_blank(character: char) -> bool {
    character.is_whitespace() || character == '\u{2800}'
}

/// The zero-width joiner and non-joiner, and what selects a variant of the character before it.
fn joins(character: char) -> bool {
    matches!(
        character,
        '\u{180b}'..='\u{180d}' | '\u{180f}' | '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}'
    )
}

/// The property `Default_Ignorable_Code_Point` of the Unicode Standard: printed as nothing.
fn is_ignorable(character: char) -> bool {
    matches!(
        character,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// A code point that never is a character.
fn is_noncharacter(character: char) -> bool {
    let code = u32::from(character);
    (0xfdd0..=0xfdef).contains(&code) || code & 0xfffe == 0xfffe
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
    character.width().unwrap_or(0)
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
        assert_eq!(printable("two words"), "two words");
    }

    #[test]
    fn a_label_has_something_to_see() {
        for (token, expected) in [
            ("", "∅"),
            (" ", "␠"),
            ("  café au lait ", "␠␠café au lait␠"),
            ("\u{a0}", "␠"),
            ("\u{3000}\u{2800}", "␠␠"),
            ("\n", "␊"),
            ("a\u{ad}b", "a\u{fffd}b"),
            ("\u{200d}", "\u{fffd}"),
            ("\u{1f469}\u{200d}\u{1f4bb}", "\u{1f469}\u{200d}\u{1f4bb}"),
            ("\u{2764}\u{fe0f}", "\u{2764}\u{fe0f}"),
            ("\u{fe0f}", "\u{fffd}"),
            ("\u{301}", "◌\u{301}"),
            ("\u{bcd}x", "◌\u{bcd}x"),
            (" \u{301}", "␠\u{301}"),
        ] {
            assert_eq!(label(token), expected, "{token:?}");
        }
        for token in [
            '\u{ad}',
            '\u{200d}',
            '\u{2062}',
            '\u{180e}',
            '\u{206a}',
            '\u{e0041}',
            '\u{fff9}',
            '\u{3164}',
            '\u{115f}',
            '\u{34f}',
            '\u{17b4}',
            '\u{1160}',
            '\u{ffa0}',
            '\u{1d173}',
            '\u{fdd0}',
            '\u{1ffff}',
        ] {
            assert_eq!(label(&token.to_string()), "\u{fffd}", "{token:?}");
        }
    }

    #[test]
    fn nonspacing_marks_take_no_column_in_any_script() {
        // Bengali, Gurmukhi, Gujarati, Tamil, Telugu, Kannada, Sinhala, Lao, Khmer, Burmese, Tibetan, Hebrew, Arabic, Thai, Devanagari.
        let marks = [
            '\u{9c1}', '\u{a70}', '\u{ac1}', '\u{bcd}', '\u{c46}', '\u{ccd}', '\u{dd2}', '\u{ec9}',
            '\u{17d2}', '\u{103a}', '\u{f7c}', '\u{f90}', '\u{5c1}', '\u{64e}', '\u{e34}',
            '\u{94d}',
        ];
        for mark in marks {
            assert_eq!(width(&format!("x{mark}")), 1, "{mark:?}");
        }
        assert_eq!(width("தமிழ்"), 4);
    }
}
