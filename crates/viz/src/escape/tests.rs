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
