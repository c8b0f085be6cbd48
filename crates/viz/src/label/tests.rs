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
        '\u{17d2}', '\u{103a}', '\u{f7c}', '\u{f90}', '\u{5c1}', '\u{64e}', '\u{e34}', '\u{94d}',
    ];
    for mark in marks {
        assert_eq!(width(&format!("x{mark}")), 1, "{mark:?}");
    }
    assert_eq!(width("தமிழ்"), 4);
}
