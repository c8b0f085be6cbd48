//! The terminal picture: it lines up, and it says what it leaves out.

use burn_attn_viz::{Background, TextOptions, render_text};

use crate::{INVISIBLE, hostile, invisible, map_of, sample};

fn at_width(max_width: usize) -> TextOptions {
    TextOptions::default().max_width(max_width)
}

/// The same picture without its colours.
fn without_colors(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let first = parts.next().unwrap_or("").to_owned();
    parts.fold(first, |plain, part| {
        plain + part.split_once('m').expect("a colour ends in m").1
    })
}

#[test]
fn golden_shades() {
    assert_eq!(
        render_text(&sample(), 0, &TextOptions::default()),
        "\
layer 1, head 1 of 2: rows are queries, columns are keys
     I      am     fast   asleep .
je   ░░░░░░ ░░░░░░ ▒▒▒▒▒▒ ▒▒▒▒▒▒
dors ▓▓▓▓▓▓ ░░░░░░ ░░░░░░ ▒▒▒▒▒▒
.           ······ ······ ░░░░░░ ██████
weight: · <0.05  ░ <0.25  ▒ <0.5  ▓ <0.75  █ ≥0.75; blank is hidden
"
    );
}

#[test]
fn golden_percentages_under_the_colours() {
    let options = TextOptions::default().color(Background::Dark);
    let colored = render_text(&sample(), 0, &options);
    assert_eq!(
        without_colors(&colored),
        "\
layer 1, head 1 of 2: rows are queries, columns are keys
     I      am     fast   asleep .
je     10     20     30     40  \n\
dors   50     12     12     25  \n\
.             1      4      5      90  \n\
weight in percent; blank is hidden
"
    );
}

#[test]
fn hidden_is_blank_and_a_visible_0_is_not() {
    let map = map_of(&["q"], &["x", "y", "z"], &[0.0, 0.0, 1.0]).unwrap();
    let map = map.with_hidden(vec![true, false, false]).unwrap();
    let text = render_text(&map, 0, &TextOptions::default());
    assert!(text.contains("\nq     ··· ███\n"), "{text}");
    let options = TextOptions::default().color(Background::Dark);
    let text = render_text(&map, 0, &options);
    assert!(
        text.contains("\nq     \u{1b}[48;2;23;33;40;"),
        "a weight of 0 is close to the background: {text:?}"
    );
    assert!(
        without_colors(&text).contains("\nq      0  100\n"),
        "{text:?}"
    );
}

#[test]
fn narrow_terminal_sums_up_what_does_not_fit() {
    assert_eq!(
        render_text(&sample(), 0, &at_width(17)),
        "\
layer 1, head 1 …
     I   am  +3
je   ░░░ ░░░ ▓▓▓
dors ▓▓▓ ░░░ ▒▒▒
.        ··· ███
weight: · <0.05 …
2 of 5 keys fit;…
"
    );
}

#[test]
fn the_line_below_says_what_the_last_column_is() {
    let keys = ["k"; 31];
    for (count, line) in [
        (20, "18 of 20 keys fit; column +2 is the sum of the other 2"),
        (
            31,
            "18 of 31 keys fit; column +13 is the sum of the other 13",
        ),
    ] {
        let map = map_of(&["q"], &keys[..count], &vec![0.0; count]);
        let text = render_text(&map.unwrap(), 0, &at_width(78));
        assert_eq!(text.lines().last(), Some(line));
    }
}

#[test]
fn the_sum_is_named_after_all_keys_that_do_not_fit() {
    for keys in [101, 499, 1009] {
        let weights = vec![1.0 / keys as f32; keys];
        let map = map_of(&["q"], &vec!["k"; keys], &weights).unwrap();
        for max_width in 12..80 {
            let text = render_text(&map, 0, &at_width(max_width));
            let [header, row] = [1, 2].map(|line| text.lines().nth(line).unwrap());
            let shown = header.matches('k').count();
            let expected = format!(" +{}", keys - shown);
            assert!(header.ends_with(&expected), "{header:?} at {max_width}");
            let widest = header.chars().count().max(row.chars().count());
            assert!(widest <= max_width, "{header:?} at {max_width}");
        }
    }
}

#[test]
fn columns_become_narrower_before_keys_are_left_out() {
    let text = render_text(&sample(), 0, &at_width(29));
    assert!(text.contains("\n     I    am   fast asl… .\n"), "{text}");
}

#[test]
fn no_line_is_wider_than_asked_for() {
    for max_width in 12..100 {
        for line in render_text(&sample(), 1, &at_width(max_width)).lines() {
            assert!(line.chars().count() <= max_width, "{line:?} at {max_width}");
        }
    }
}

#[test]
fn one_key_is_drawn_in_no_room_at_all() {
    let text = render_text(&sample(), 0, &at_width(0));
    assert!(text.contains("\n     I   +4\n"), "{text}");
}

#[test]
fn wide_and_accented_tokens_line_up() {
    let labels = ["東京", "e\u{301}te\u{301}", "naïve"];
    let map = map_of(&labels, &labels, &[0.0, 0.0, 1.0].repeat(3)).unwrap();
    let text = render_text(&map, 0, &TextOptions::default());
    let expected = [
        "      東京  e\u{301}te\u{301}   naïve",
        "東京              █████",
        "e\u{301}te\u{301}               █████",
        "naïve             █████",
    ];
    assert_eq!(text.lines().skip(1).take(4).collect::<Vec<_>>(), expected);
}

#[test]
fn tokens_cannot_send_control_characters() {
    let text = render_text(&hostile(), 0, &TextOptions::default());
    assert!(!text.contains('\u{1b}') && !text.contains('\u{2028}'));
    assert_eq!(
        text.lines().count(),
        8,
        "a newline in a token does not break the line"
    );
    assert!(text.contains("␛[31m"));
}

#[test]
fn nonspacing_marks_of_every_script_take_no_column() {
    // Without the characters of the categories Mn and Me, each of these words has so many.
    let words = [
        ("தமிழ்", 4),
        ("হিন্দু", 4),
        ("ਪੰਜ", 2),
        ("ગુજ", 2),
        ("తెలు", 3),
        ("ಕನ್ನ", 3),
        ("සිංහ", 3),
        ("ລ້າວ", 3),
        ("ខ្មែ", 3),
        ("မြန်", 3),
        ("བོད", 2),
        ("שׁל", 2),
        ("عَرَ", 2),
        ("กี่", 1),
        ("हिन्", 3),
    ];
    for (word, columns) in words {
        let map = map_of(&[word, "abcdefghij"], &["k"], &[1.0, 1.0]).unwrap();
        let text = render_text(&map, 0, &TextOptions::default());
        let row = text.lines().nth(2).unwrap();
        let spaces = " ".repeat(10 - columns + 1);
        assert_eq!(row, format!("{word}{spaces}███"), "{word}");
    }
}

#[test]
fn every_token_has_a_visible_label() {
    let text = render_text(&invisible(), 0, &TextOptions::default());
    let rows = text.lines().skip(2);
    for (row, (token, label)) in rows.zip(INVISIBLE) {
        assert!(row.starts_with(label), "{token:?}: {row:?}");
    }
}

#[test]
fn tokens_that_print_nothing_are_visible() {
    let labels = ["\u{200b}", "\u{200f}a\u{feff}"];
    let map = map_of(&labels, &labels, &[1.0, 0.0, 0.0, 1.0]).unwrap();
    let text = render_text(&map, 0, &TextOptions::default());
    assert!(text.contains("\u{fffd}a\u{fffd}"), "{text}");
    assert!(!text.contains(['\u{200b}', '\u{200f}', '\u{feff}']));
}

#[test]
#[should_panic(expected = "head 2 is outside a map of 2 heads")]
fn head_outside_the_map_panics() {
    render_text(&sample(), 2, &TextOptions::default());
}
