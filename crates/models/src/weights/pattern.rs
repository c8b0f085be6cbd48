//! Names with placeholders for numbers, `layers.{layer}.weight`, and names with `*` for anything.

/// The numbers that the placeholders of a name stand for.
pub(super) type Numbers = Vec<(String, String)>;

/// A piece of a name with placeholders.
enum Part<'a> {
    Text(&'a str),
    Placeholder(&'a str),
}

fn parts(mut name: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    while let Some((text, rest)) = name.split_once('{') {
        let Some((placeholder, rest)) = rest.split_once('}') else {
            break;
        };
        parts.extend([Part::Text(text), Part::Placeholder(placeholder)]);
        name = rest;
    }
    parts.push(Part::Text(name));
    parts
}

/// The numbers that turn `name` into `path`; a placeholder stands for the same number wherever it occurs.
pub(super) fn numbers(name: &str, path: &str) -> Option<Numbers> {
    let mut numbers = Numbers::new();
    let mut rest = path;
    for part in parts(name) {
        match part {
            Part::Text(text) => rest = rest.strip_prefix(text)?,
            Part::Placeholder(placeholder) => {
                let digits =
                    rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
                let (number, behind) = rest.split_at(digits);
                let known = numbers.iter().find(|(name, _)| name == placeholder);
                match known {
                    _ if number.is_empty() => return None,
                    Some((_, known)) if known != number => return None,
                    Some(_) => {}
                    None => numbers.push((placeholder.into(), number.into())),
                }
                rest = behind;
            }
        }
    }
    rest.is_empty().then_some(numbers)
}

/// `name` with these numbers; placeholders without one stay.
pub(super) fn filled(name: &str, numbers: &Numbers) -> String {
    numbers
        .iter()
        .fold(name.into(), |name, (placeholder, number)| {
            name.replace(&format!("{{{placeholder}}}"), number)
        })
}

/// The first placeholder of a name.
pub(super) fn placeholder(name: &str) -> Option<&str> {
    parts(name).into_iter().find_map(|part| match part {
        Part::Placeholder(placeholder) => Some(placeholder),
        Part::Text(_) => None,
    })
}

/// `*` instead of every placeholder.
fn pattern(name: &str) -> String {
    let parts = parts(name).into_iter().map(|part| match part {
        Part::Text(text) => text,
        Part::Placeholder(_) => "*",
    });
    parts.collect()
}

/// How many `*` and placeholders a pattern has.
pub(super) fn count(name: &str) -> usize {
    pattern(name).matches('*').count()
}

/// Whether a name is what a pattern with `*` and placeholders describes.
pub(super) fn matches(name: &str, pattern: &str) -> bool {
    captured(name, pattern).is_some()
}

/// `name` renamed if `from` describes it: what each `*` of `from` stood for replaces that of `to`.
pub(super) fn renamed(name: &str, from: &str, to: &str) -> Option<String> {
    let mut captured = captured(name, from)?.into_iter();
    let to = pattern(to);
    let mut parts = to.split('*');
    let mut renamed = parts.next().unwrap_or_default().to_string();
    for part in parts {
        renamed.push_str(captured.next().unwrap_or_default());
        renamed.push_str(part);
    }
    Some(renamed)
}

/// What each `*` stands for: as little as possible, except for the last. Reads the name at most once for each `*`.
fn captured<'n>(name: &'n str, from: &str) -> Option<Vec<&'n str>> {
    let from = pattern(from);
    let Some((first, others)) = from.split_once('*') else {
        return (from == name).then(Vec::new);
    };
    let (middle, last) = others
        .rsplit_once('*')
        .map_or((None, others), |(m, l)| (Some(m), l));
    let mut rest = name.strip_prefix(first)?.strip_suffix(last)?;
    let mut captured = Vec::new();
    for text in middle.into_iter().flat_map(|middle| middle.split('*')) {
        let at = rest.find(text)?;
        captured.push(&rest[..at]);
        rest = &rest[at + text.len()..];
    }
    captured.push(rest);
    Some(captured)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_stand_for_numbers() {
        let found = numbers("h.{layer}.e.{expert}.w", "h.10.e.3.w").expect("matches");
        assert_eq!(
            filled("b.{expert}.{layer}.{other}", &found),
            "b.3.10.{other}"
        );
        assert_eq!(numbers("h.{layer}.w", "h..w"), None);
        assert_eq!(numbers("h.{layer}.w", "h.a.w"), None);
        assert_eq!(numbers("h.{layer}.w", "h.1.w.w"), None);
        assert_eq!(numbers("{a}.{a}", "1.2"), None);
        assert!(numbers("{a}.{a}", "12.12").is_some());
        assert_eq!(placeholder("a.{b}.{c}"), Some("b"));
    }

    #[test]
    fn stars_stand_for_anything() {
        assert!(matches("position_ids", "*position_ids"));
        assert!(matches("a.b.position_ids", "*.position_ids"));
        assert!(!matches("position_ids", "*.position_ids"));
        assert!(matches("h.3.attn.bias", "h.{layer}.attn.bias"));
        assert!(!matches("aba", "ab*ba"), "ends may not overlap");
        assert!(matches("a", "a") && !matches("b", "a"));
        assert_eq!(renamed("bert.a.b", "bert.*", "*").as_deref(), Some("a.b"));
        assert_eq!(
            renamed("a.x.b.y.c", "a.*.b.*.c", "*-*").as_deref(),
            Some("x-y")
        );
        assert_eq!(
            renamed("l.3.gamma", "l.{i}.gamma", "l.{i}.weight").as_deref(),
            Some("l.3.weight")
        );
        assert_eq!(renamed("other", "bert.*", "*"), None);
    }
}
