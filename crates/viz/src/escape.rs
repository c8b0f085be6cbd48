//! Escaping for the three formats of the pictures: HTML, SVG (XML), and JSON inside HTML.

use std::fmt::Write;

/// `text` as the content of an element, or as a quoted attribute, of HTML or XML.
///
/// Characters that XML forbids even as references (most of U+0000 to U+001F, U+FFFE, U+FFFF) become U+FFFD.
pub(crate) fn markup(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\t' | '\n' | '\r' => escaped.push(character),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            _ => escaped.push(character),
        }
    }
    escaped
}

/// `text` as a JSON string, quotes included, that may stand inside an HTML `<script>` element.
///
/// `<`, `>` and `&` are written as `\u` escapes, so that no text can end the script element (`</script>`) or open a
/// comment in it (`<!--`); U+2028 and U+2029 too, which end a line in older JavaScript.
pub(crate) fn json(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 2);
    escaped.push('"');
    for character in text.chars() {
        match character {
            '"' => escaped.push_str("\\\""),
            '\\' => escaped.push_str("\\\\"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' | '\u{7f}' => {
                write!(escaped, "\\u{:04x}", u32::from(character))
                    .expect("a String takes every write");
            }
            _ => escaped.push(character),
        }
    }
    escaped.push('"');
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_escapes_the_five_characters_and_keeps_the_rest() {
        assert_eq!(
            markup(r#"<b a="1" c='2'>&amp;"#),
            "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;amp;"
        );
        assert_eq!(markup("naïve 東京 \n"), "naïve 東京 \n");
    }

    #[test]
    fn markup_replaces_what_xml_forbids() {
        assert_eq!(markup("a\0b\u{1b}c\u{ffff}"), "a\u{fffd}b\u{fffd}c\u{fffd}");
    }

    #[test]
    fn json_cannot_leave_its_script_element() {
        assert_eq!(json("</script>"), r#""\u003c/script\u003e""#);
        assert_eq!(json("<!--&"), r#""\u003c!--\u0026""#);
    }

    #[test]
    fn json_escapes_quotes_backslashes_and_line_ends() {
        assert_eq!(json(r#"a"b\c"#), r#""a\"b\\c""#);
        assert_eq!(
            json("\n\t\u{2028}\u{2029}\0"),
            r#""\u000a\u0009\u2028\u2029\u0000""#
        );
        assert_eq!(json("é東"), "\"é東\"");
    }
}
