//! A strict reader of markup: every element is closed, every attribute quoted, every `&` an entity.

/// The elements of HTML that have no end tag.
const VOID: [&str; 2] = ["meta", "link"];

/// The names of all elements in order, each with its attributes as they are written.
///
/// Panics with the place of the fault if the markup is not well formed.
pub fn elements(markup: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open: Vec<String> = Vec::new();
    let mut rest = markup.strip_prefix("<!doctype html>").unwrap_or(markup);
    while let Some(start) = rest.find('<') {
        check_text(&rest[..start]);
        let end = rest.find('>').expect("a tag ends");
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            let expected = open.pop();
            assert_eq!(
                expected.as_deref(),
                Some(name),
                "an end tag closes the last element opened"
            );
            continue;
        }
        let closed = tag.ends_with('/');
        let tag = tag.trim_end_matches('/');
        let (name, attributes) = tag.split_once(char::is_whitespace).unwrap_or((tag, ""));
        assert!(
            !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric()),
            "{name:?} is an element"
        );
        check_text(attributes);
        let quotes = attributes.matches('"').count();
        assert!(quotes % 2 == 0, "the quotes of {tag:?} are paired");
        found.push((name.to_owned(), attributes.to_owned()));
        if closed || VOID.contains(&name) {
            continue;
        }
        if name == "script" || name == "style" {
            // The content of these is not markup: only their own end tag ends it.
            let end = rest
                .find(&format!("</{name}"))
                .expect("the raw element ends");
            assert!(
                !rest[..end].contains("<!--"),
                "no comment opens in a script"
            );
            rest = &rest[end..];
        }
        open.push(name.to_owned());
    }
    assert_eq!(rest.trim(), "", "nothing follows the last element");
    assert!(open.is_empty(), "still open: {open:?}");
    found
}

fn check_text(text: &str) {
    assert!(
        !text.contains('<') && !text.contains('>'),
        "{text:?} is escaped"
    );
    for (place, _) in text.match_indices('&') {
        let entity = text[place + 1..].split(';').next().unwrap_or("");
        assert!(
            ["amp", "lt", "gt", "quot", "#39"].contains(&entity),
            "& begins an entity in {text:?}"
        );
    }
}

#[test]
fn reader_accepts_good_markup() {
    let found = elements("<!doctype html>\n<a b=\"c\"><d/>x &amp; y</a>\n");
    assert_eq!(found[0], ("a".to_owned(), "b=\"c\"".to_owned()));
    assert_eq!(found[1].0, "d");
}

#[test]
#[should_panic(expected = "closes the last element")]
fn reader_refuses_crossed_elements() {
    elements("<a><b></a></b>");
}

#[test]
#[should_panic(expected = "begins an entity")]
fn reader_refuses_a_bare_ampersand() {
    elements("<a>x & y</a>");
}
