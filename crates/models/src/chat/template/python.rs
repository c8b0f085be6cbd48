//! Jinja as transformers sets it up: with the methods of Python's texts, lists and mappings, and with filters, tests and functions that differ from minijinja's.

use std::fmt::Write;

use minijinja::{
    Environment, Error, ErrorKind, State, Value, context, filters,
    formatting::{FormatStyle, format},
    value::{Kwargs, Rest, Tuple, ValueKind, from_args},
};
use minijinja_contrib::pycompat::unknown_method_callback;

use super::{json::tojson, source::PERCENT};

/// An environment for chat templates.
pub fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    minijinja_contrib::add_to_environment(&mut environment);
    environment.set_unknown_method_callback(method);
    environment.add_filter("tojson", tojson);
    // A text and a mapping have a length and items, and so are sequences in Python.
    environment.add_test("sequence", |value: &Value| {
        let kinds = [
            ValueKind::Undefined,
            ValueKind::String,
            ValueKind::Seq,
            ValueKind::Map,
        ];
        kinds.contains(&value.kind())
    });
    environment.add_test("iterable", |value: &Value| {
        !value.is_none() && value.try_iter().is_ok()
    });
    environment.add_test("number", |value: &Value| {
        [ValueKind::Number, ValueKind::Bool].contains(&value.kind())
    });
    environment.add_function(PERCENT, percent);
    environment.add_function(
        "raise_exception",
        |problem: String| -> Result<String, Error> {
            Err(Error::new(ErrorKind::InvalidOperation, problem))
        },
    );
    environment.add_function("strftime_now", |format: String| {
        let now = chrono::Local::now();
        let mut text = String::new();
        // A format that cannot be is an error here, and a panic in `to_string`.
        match write!(text, "{}", now.format(&format)) {
            Ok(()) => Ok(text),
            Err(_) => Err(refused(format!("strftime_now does not know {format:?}"))),
        }
    });
    environment
}

fn refused(problem: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, problem.into())
}

/// The operator `%`: a remainder, or a text that is filled in.
fn percent(state: &State, left: &Value, right: &Value) -> Result<Value, Error> {
    let Some(text) = left.as_str() else {
        let remainder = state.env().compile_expression("left % right")?;
        return remainder.eval(context! { left, right });
    };
    let values = match right.downcast_object_ref::<Tuple>() {
        Some(_) => right.try_iter()?.collect(),
        None => vec![right.clone()],
    };
    format(FormatStyle::Printf, text, &values).map(Value::from)
}

/// A method that minijinja does not have. Those that are here come before those of minijinja's crate of Python's methods, which lacks them or differs.
fn method(state: &mut State, value: &Value, method: &str, args: &[Value]) -> Result<Value, Error> {
    let found = match (value.kind(), value.as_str()) {
        (_, Some(text)) => of_text(text, method, args)?,
        (ValueKind::Seq, _) => of_list(value, method, args)?,
        (ValueKind::Map, _) if method == "copy" && args.is_empty() => Some(value.clone()),
        _ => None,
    };
    match found {
        Some(found) => Ok(found),
        None => unknown_method_callback(state, value, method, args),
    }
}

fn of_list(list: &Value, method: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    Ok(Some(match method {
        "copy" => list.clone(),
        "index" => {
            let (wanted,): (&Value,) = from_args(args)?;
            let place = list.try_iter()?.position(|item| item == *wanted);
            place
                .map(Value::from)
                .ok_or_else(|| refused(format!("{wanted} is not in the list")))?
        }
        _ => return Ok(None),
    }))
}

fn of_text(text: &str, method: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    let found = match method {
        "split" | "rsplit" => {
            let (separator, most) = split_args(args)?;
            let parts = match method {
                "split" => {
                    filters::split(&Value::from(text), separator.map(Into::into), Some(most))?
                }
                _ => rsplit(text, separator.as_deref(), most).into(),
            };
            return Ok(Some(parts));
        }
        "splitlines" => {
            let (keep, named): (Option<bool>, Kwargs) = from_args(args)?;
            let keep = keep.or(named.get("keepends")?);
            named.assert_all_used()?;
            lines(text, keep.unwrap_or(false)).into()
        }
        "removeprefix" | "removesuffix" => {
            let (affix,): (&str,) = from_args(args)?;
            let rest = match method {
                "removeprefix" => text.strip_prefix(affix),
                _ => text.strip_suffix(affix),
            };
            Value::from(rest.unwrap_or(text))
        }
        "partition" | "rpartition" => {
            let (separator,): (&str,) = from_args(args)?;
            let parts = match method {
                "partition" => match text.split_once(separator) {
                    Some((before, after)) => [before, separator, after],
                    None => [text, "", ""],
                },
                _ => match text.rsplit_once(separator) {
                    Some((before, after)) => [before, separator, after],
                    None => ["", "", text],
                },
            };
            Value::from(Tuple::from(parts.map(Value::from)))
        }
        "index" | "rindex" => {
            let (wanted, rest): (&str, Rest<Value>) = from_args(args)?;
            let at = found(text, method == "rindex", wanted, &rest)?;
            if at < 0 {
                return Err(refused(format!("{wanted:?} is not in {text:?}")));
            }
            Value::from(at)
        }
        "find" | "rfind" => {
            let (wanted, rest): (&str, Rest<Value>) = from_args(args)?;
            Value::from(found(text, method == "rfind", wanted, &rest)?)
        }
        "count" => {
            let (wanted, rest): (&str, Rest<Value>) = from_args(args)?;
            Value::from(part(text, &rest)?.1.matches(wanted).count())
        }
        "startswith" | "endswith" if args.len() > 1 => {
            let (wanted, rest): (&Value, Rest<Value>) = from_args(args)?;
            return of_part(part(text, &rest)?.1, method, wanted).map(Some);
        }
        "center" | "ljust" | "rjust" | "zfill" => {
            let (width, fill): (usize, Option<char>) = from_args(args)?;
            Value::from(padded(text, method, width, fill.unwrap_or(' ')))
        }
        "title" => Value::from(cased(text, |before, c| match before {
            true => c.to_lowercase().collect(),
            false => c.to_uppercase().collect(),
        })),
        "swapcase" => Value::from(cased(text, |_, c| match c.is_uppercase() {
            true => c.to_lowercase().collect(),
            false => c.to_uppercase().collect(),
        })),
        "casefold" => Value::from(text.to_lowercase().replace('ß', "ss")),
        "istitle" => {
            let title = of_text(text, "title", &[])?;
            let has_case = text.chars().any(|c| c.is_uppercase());
            Value::from(has_case && title == Some(Value::from(text)))
        }
        "isdecimal" => {
            let digits = text.chars().all(|c| c.is_numeric());
            Value::from(!text.is_empty() && digits)
        }
        "expandtabs" => {
            let (width,): (Option<usize>,) = from_args(args)?;
            Value::from(without_tabs(text, width.unwrap_or(8)))
        }
        _ => return Ok(None),
    };
    Ok(Some(found))
}

fn split_args(args: &[Value]) -> Result<(Option<String>, i64), Error> {
    let (separator, most, named): (Option<String>, Option<i64>, Kwargs) = from_args(args)?;
    let separator = separator.or(named.get("sep")?);
    let most = most.or(named.get("maxsplit")?);
    named.assert_all_used()?;
    match separator.as_deref() {
        Some("") => Err(refused("empty separator")),
        _ => Ok((separator, most.unwrap_or(-1))),
    }
}

/// Python's `rsplit`, at most so many times if `most` is not below 0.
fn rsplit(text: &str, separator: Option<&str>, most: i64) -> Vec<Value> {
    let most = usize::try_from(most).unwrap_or(usize::MAX - 1);
    let mut parts: Vec<&str> = match separator {
        Some(separator) => text.rsplitn(most + 1, separator).collect(),
        None => {
            let mut parts = Vec::new();
            let mut rest = text.trim_end();
            while !rest.is_empty() && parts.len() < most {
                let word = rest.rsplit(char::is_whitespace).next().unwrap_or(rest);
                parts.push(word);
                rest = rest[..rest.len() - word.len()].trim_end();
            }
            parts.extend((!rest.is_empty()).then_some(rest));
            parts
        }
    };
    parts.reverse();
    parts.into_iter().map(Value::from).collect()
}

/// The lines of a text: Python also ends them at form feeds and the like.
fn lines(text: &str, keep_ends: bool) -> Vec<Value> {
    let is_end = |c: char| matches!(c, '\n'..='\r' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}');
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(end) = rest.find(is_end) {
        let len = rest[end..].chars().next().map_or(0, char::len_utf8);
        let len = if rest[end..].starts_with("\r\n") {
            2
        } else {
            len
        };
        lines.push(&rest[..if keep_ends { end + len } else { end }]);
        rest = &rest[end + len..];
    }
    lines.extend((!rest.is_empty()).then_some(rest));
    lines.into_iter().map(Value::from).collect()
}

/// The part of a text that two numbers as in Python's slices name, and the place of its beginning in characters.
fn part<'a>(text: &'a str, range: &[Value]) -> Result<(i64, &'a str), Error> {
    let len = text.chars().count() as i64;
    let place =
        |number: Option<&Value>, default: i64| match number.filter(|number| !number.is_none()) {
            Some(number) => {
                let place = i64::try_from(number.clone())?;
                Ok::<_, Error>(if place < 0 { place + len } else { place }.clamp(0, len))
            }
            None => Ok(default),
        };
    let (start, end) = (place(range.first(), 0)?, place(range.get(1), len)?);
    let byte = |place: i64| {
        let mut places = text.char_indices().map(|(at, _)| at);
        places.nth(place as usize).unwrap_or(text.len())
    };
    Ok((start, &text[byte(start)..byte(end.max(start))]))
}

/// The place of a text in another, in characters, or -1.
fn found(text: &str, from_end: bool, wanted: &str, range: &[Value]) -> Result<i64, Error> {
    let (start, part) = part(text, range)?;
    let at = match from_end {
        true => part.rfind(wanted),
        false => part.find(wanted),
    };
    Ok(at.map_or(-1, |at| start + part[..at].chars().count() as i64))
}

/// Whether a text starts or ends with another, or with one of several.
fn of_part(part: &str, method: &str, wanted: &Value) -> Result<Value, Error> {
    let several = match wanted.as_str() {
        Some(_) => vec![wanted.clone()],
        None => wanted.try_iter()?.collect(),
    };
    let is = several
        .iter()
        .filter_map(Value::as_str)
        .any(|affix| match method {
            "startswith" => part.starts_with(affix),
            _ => part.ends_with(affix),
        });
    Ok(Value::from(is))
}

/// A text of `width` characters at least.
fn padded(text: &str, method: &str, width: usize, fill: char) -> String {
    let missing = width.saturating_sub(text.chars().count());
    let of = |count: usize| fill.to_string().repeat(count);
    match method {
        "ljust" => format!("{text}{}", of(missing)),
        "rjust" => format!("{}{text}", of(missing)),
        "zfill" => {
            let (sign, digits) = text.split_at(usize::from(text.starts_with(['-', '+'])));
            format!("{sign}{}{digits}", "0".repeat(missing))
        }
        // As in Python, which puts the odd one to the left of a text of odd width.
        _ => {
            let left = missing / 2 + (missing & width & 1);
            format!("{}{text}{}", of(left), of(missing - left))
        }
    }
}

/// A text with each character replaced, which depends on whether one with a case is before it.
fn cased(text: &str, replaced: impl Fn(bool, char) -> String) -> String {
    let mut before = false;
    let mut changed = String::new();
    for character in text.chars() {
        changed += &replaced(before, character);
        before = character.is_uppercase() || character.is_lowercase();
    }
    changed
}

/// A text with spaces up to the next multiple of `width` in place of tabs.
fn without_tabs(text: &str, width: usize) -> String {
    let (mut column, mut spaced) = (0, String::new());
    for character in text.chars() {
        match character {
            '\t' => {
                let count = (width - column % width.max(1)).min(width);
                spaced += &" ".repeat(count);
                column += count;
            }
            _ => {
                spaced.push(character);
                column = if ['\n', '\r'].contains(&character) {
                    0
                } else {
                    column + 1
                };
            }
        }
    }
    spaced
}
