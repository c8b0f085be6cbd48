//! Untrusted texts, shown in a terminal.

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

/// A text of several lines: each line as [`printable`] makes it, of any length. Line ends become line feeds.
pub fn printable_lines(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let lines: Vec<String> = text
        .split('\n')
        .map(|line| printable(line, usize::MAX))
        .collect();
    lines.join("\n")
}

/// A text that comes in pieces.
#[derive(Default)]
pub struct Pieces {
    /// Whether the last piece ended with a carriage return, which may be half of a line end.
    is_in_line_end: bool,
}

impl Pieces {
    /// The next piece, as [`printable_lines`] makes the whole text. A carriage return at its end waits for the next piece;
    /// at the end of the text it is left out.
    pub fn printable(&mut self, piece: &str) -> String {
        let mut text = String::from(if self.is_in_line_end { "\r" } else { "" });
        text += piece;
        self.is_in_line_end = text.ends_with('\r');
        if self.is_in_line_end {
            text.pop();
        }
        printable_lines(&text)
    }
}

#[cfg(test)]
mod tests;
