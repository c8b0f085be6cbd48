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
mod tests {
    use super::*;

    #[test]
    fn sentences_that_look_the_same_have_one_key() {
        for text in [
            "s\u{ed}, ya",
            "si\u{301}, ya",
            "\u{feff}s\u{ed}, ya",
            "s\u{ed},\u{200b} ya",
            "s\u{ad}i\u{301}, y\u{2060}a",
            "si\u{34f}\u{301}, ya",
            "s\u{ed},\u{a0}ya",
            " s\u{ed}, \u{3000} ya\r",
            "s\u{ed}\u{fe0f}, \u{e0041}y\u{0}a",
        ] {
            assert_eq!(key(text), "s\u{ed}, ya", "{text:?}");
        }
        for other in ["si, ya", "s\u{ed}, Ya", "s\u{ed},ya", "s\u{ed} ya"] {
            assert_ne!(key(other), "s\u{ed}, ya", "{other:?}");
        }
        for empty in ["", "\u{feff}", " \u{200b}\t\u{ad}"] {
            assert_eq!(key(empty), "", "{empty:?}");
        }
    }

    #[test]
    fn what_a_model_reads_keeps_the_characters_that_scripts_are_written_with() {
        assert_eq!(composed(" \u{feff}si\u{301}\u{feff} \r"), "s\u{ed}");
        for kept in [
            "m\u{6cc}\u{200c}xv",
            "a\u{a0}!",
            "\u{1f469}\u{200d}\u{1f52c}",
        ] {
            assert_eq!(composed(kept), kept);
        }
    }
}
