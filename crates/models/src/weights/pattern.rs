//! Names with placeholders for numbers, `layers.{layer}.weight`, and names with `*` for anything.

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, iter};

/// The numbers that the placeholders of a name stand for.
pub(super) type Numbers = BTreeMap<String, String>;

/// The texts of a name, each with the placeholder that follows it.
fn parts(mut name: &str) -> Vec<(&str, Option<&str>)> {
    let mut parts = Vec::new();
    while let Some((text, rest)) = name.split_once('{') {
        let Some((placeholder, rest)) = rest.split_once('}') else {
            break;
        };
        parts.push((text, Some(placeholder)));
        name = rest;
    }
    parts.push((name, None));
    parts
}

/// The numbers that turn `name` into `path`; a placeholder stands for the same number wherever it occurs.
pub(super) fn numbers(name: &str, path: &str) -> Option<Numbers> {
    let mut numbers = Numbers::new();
    let mut rest = path;
    for (text, placeholder) in parts(name) {
        rest = rest.strip_prefix(text)?;
        let Some(placeholder) = placeholder else {
            continue;
        };
        let behind = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let number = &rest[..rest.len() - behind.len()];
        let known = numbers.entry(placeholder.into());
        if number.is_empty() || known.or_insert(number.into()) != number {
            return None;
        }
        rest = behind;
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
    parts(name).first()?.1
}

/// `*` instead of every placeholder.
fn pattern(name: &str) -> String {
    let parts = parts(name).into_iter();
    let parts = parts.flat_map(|(text, placeholder)| [text, placeholder.map_or("", |_| "*")]);
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
    let captured = captured(name, from)?.into_iter().chain(iter::repeat(""));
    let to = pattern(to);
    let texts = to.split('*').zip(captured);
    Some(
        texts
            .flat_map(|(text, captured)| [text, captured])
            .collect(),
    )
}

/// What each `*` stands for: as little as possible, except for the last. Reads the name at most once for each `*`.
fn captured<'n>(name: &'n str, from: &str) -> Option<Vec<&'n str>> {
    let from = pattern(from);
    let mut texts = from.split('*');
    let mut rest = name.strip_prefix(texts.next()?)?;
    let Some(last) = texts.next_back() else {
        return rest.is_empty().then(Vec::new);
    };
    rest = rest.strip_suffix(last)?;
    let mut captured = Vec::new();
    for text in texts {
        let (stood_for, behind) = rest.split_once(text)?;
        captured.push(stood_for);
        rest = behind;
    }
    captured.push(rest);
    Some(captured)
}
