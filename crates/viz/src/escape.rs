//! Text for the formats of the pictures: HTML, SVG (XML), and JSON inside HTML.

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
                escaped += &format!("\\u{:04x}", u32::from(character));
            }
            _ => escaped.push(character),
        }
    }
    escaped.push('"');
    escaped
}

#[cfg(test)]
mod tests;
