//! When two sentences are the same.

use std::sync::LazyLock;

use regex::Regex;
use unicode_normalization::UnicodeNormalization;

/// The most characters of a sentence that are printed.
pub const LONGEST: usize = 200;

/// Characters that print nothing: those that Unicode calls default-ignorable, such as U+FEFF, U+200B and the soft hyphen, and control
/// characters other than white space.
static INVISIBLE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"[\p{Default_Ignorable_Code_Point}[\p{Cc}--\p{White_Space}]]")
        .expect("the pattern is valid")
});

/// The text that models read and write: with composed letters (NFC), and without byte order marks and outer white space.
pub fn composed(text: &str) -> String {
    let text = text.replace('\u{feff}', "");
    text.trim().nfc().collect()
}

/// What all sentences have in common that look the same: composed letters, one space for any white space, and nothing invisible.
///
/// Only for comparisons: some scripts, and emoji, are written with invisible characters.
pub fn key(text: &str) -> String {
    let visible: String = INVISIBLE.replace_all(text, "").nfc().collect();
    visible.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
