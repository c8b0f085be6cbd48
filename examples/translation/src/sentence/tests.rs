//! Sentences that are the same.

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
