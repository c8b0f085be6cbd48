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
    let printed = printable(token);
    let from_start = printed.trim_start_matches(is_blank);
    let inside = from_start.trim_end_matches(is_blank);
    let spaces = |text: &str| "␠".repeat(text.chars().count());
    let before = spaces(&printed[..printed.len() - from_start.len()]);
    let label = format!("{before}{inside}{}", spaces(&from_start[inside.len()..]));
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

/// The number of columns that the widest of these labels takes.
pub(crate) fn widest(labels: &[String]) -> usize {
    labels.iter().map(|label| width(label)).max().unwrap_or(0)
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
mod tests;
