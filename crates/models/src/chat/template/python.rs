//! Jinja as transformers sets it up: with the methods of Python's texts, lists and mappings, and with filters, tests and functions that differ from minijinja's.

use std::fmt::Write;

use minijinja::{
    Environment, Error, ErrorKind, State, Value, context, filters,
    formatting::{FormatStyle, format},
    value::{Kwargs, Rest, Tuple, ValueKind, from_args},
};
use minijinja_contrib::pycompat::unknown_method_callback;

use super::source::PERCENT;

/// An environment for chat templates, without `tojson`.
pub fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    minijinja_contrib::add_to_environment(&mut environment);
    environment.set_unknown_method_callback(method);
    // A text and a mapping have a length and items, so both are sequences in Python.
    environment.add_test("sequence", |value: &Value| {
        use ValueKind::{Map, Seq, String, Undefined};
        matches!(value.kind(), Undefined | String | Seq | Map)
    });
    environment.add_test("iterable", |value: &Value| {
        !value.is_none() && value.try_iter().is_ok()
    });
    environment.add_test("number", |value: &Value| {
        matches!(value.kind(), ValueKind::Number | ValueKind::Bool)
    });
    environment.add_function(PERCENT, percent);
    environment.add_function("raise_exception", |problem: String| {
        Err::<Value, _>(refused(problem))
    });
    environment.add_function("strftime_now", |format: String| {
        let now = chrono::Local::now();
        let mut text = String::new();
        // An invalid format is an error here, and a panic in `to_string`.
        match write!(text, "{}", now.format(&format)) {
            Ok(()) => Ok(text),
            Err(_) => Err(refused(format!("strftime_now does not know {format:?}"))),
        }
    });
    environment
}

/// The error of a template with an invalid operation.
pub fn refused(problem: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, problem.into())
}

/// The operator `%`: a remainder, or the formatting of a text.
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

/// A method that minijinja does not have. These methods come before those of minijinja's crate of Python's methods, which lacks them or differs.
fn method(state: &mut State, value: &Value, method: &str, args: &[Value]) -> Result<Value, Error> {
    let found = match (value.kind(), value.as_str()) {
        (_, Some(text)) => of_text(state, text, method, args)?,
        (ValueKind::Seq | ValueKind::Map, _) if method == "copy" && args.is_empty() => {
            Some(value.clone())
        }
        (ValueKind::Seq, _) if method == "index" => {
            let (wanted,): (&Value,) = from_args(args)?;
            let place = value.try_iter()?.position(|item| item == *wanted);
            let missing = || refused(format!("{wanted} is not in the list"));
            Some(place.ok_or_else(missing)?.into())
        }
        _ => None,
    };
    match found {
        Some(found) => Ok(found),
        None => unknown_method_callback(state, value, method, args),
    }
}

fn of_text(
    state: &mut State,
    text: &str,
    method: &str,
    args: &[Value],
) -> Result<Option<Value>, Error> {
    let found = match method {
        "split" | "rsplit" => {
            let (separator, most, named): (Option<String>, Option<i64>, Kwargs) = from_args(args)?;
            let separator = separator.or(named.get("sep")?);
            let most = most.or(named.get("maxsplit")?).unwrap_or(-1);
            named.assert_all_used()?;
            match (method, separator.as_deref()) {
                (_, Some("")) => return Err(refused("empty separator")),
                ("split", separator) => {
                    filters::split(&Value::from(text), separator.map(Into::into), Some(most))?
                }
                (_, separator) => rsplit(text, separator, most).into(),
            }
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
            rest.unwrap_or(text).into()
        }
        "partition" | "rpartition" => {
            let (separator,): (&str,) = from_args(args)?;
            let (at, missing) = match method {
                "partition" => (text.split_once(separator), [text, "", ""]),
                _ => (text.rsplit_once(separator), ["", "", text]),
            };
            let parts = at.map_or(missing, |(before, after)| [before, separator, after]);
            Value::from(Tuple::from(parts.map(Value::from)))
        }
        "index" | "rindex" | "find" | "rfind" => {
            let (wanted, rest): (&str, Rest<Value>) = from_args(args)?;
            let (start, part) = part(text, &rest)?;
            let at = match method.starts_with('r') {
                true => part.rfind(wanted),
                false => part.find(wanted),
            };
            match at {
                Some(at) => Value::from(start + part[..at].chars().count() as i64),
                None if method.ends_with("find") => Value::from(-1),
                None => return Err(refused(format!("{wanted:?} is not in {text:?}"))),
            }
        }
        "count" => {
            let (wanted, rest): (&str, Rest<Value>) = from_args(args)?;
            part(text, &rest)?.1.matches(wanted).count().into()
        }
        "startswith" | "endswith" if args.len() > 1 => {
            let (_, part) = part(text, &args[1..])?;
            unknown_method_callback(state, &part.into(), method, &args[..1])?
        }
        "center" | "ljust" | "rjust" | "zfill" => {
            let (width, fill): (usize, Option<char>) = from_args(args)?;
            padded(text, method, allowed(width)?, fill.unwrap_or(' ')).into()
        }
        "title" => titled(text).into(),
        "swapcase" => {
            let swapped = text.chars().map(|c| match c.is_uppercase() {
                true => c.to_lowercase().to_string(),
                false => c.to_uppercase().to_string(),
            });
            swapped.collect::<String>().into()
        }
        "casefold" => text.to_lowercase().replace('ß', "ss").into(),
        "istitle" => (text.chars().any(char::is_uppercase) && titled(text) == text).into(),
        "isdecimal" => unknown_method_callback(state, &text.into(), "isdigit", args)?,
        "expandtabs" => {
            let (width,): (Option<usize>,) = from_args(args)?;
            without_tabs(text, allowed(width.unwrap_or(8))?).into()
        }
        _ => return Ok(None),
    };
    Ok(Some(found))
}

/// Python's `rsplit`, at most `most` times unless `most` is below 0.
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
        let (line, from_end) = rest.split_at(end);
        let after = from_end.strip_prefix("\r\n");
        let after = after.or(from_end.strip_prefix(is_end)).unwrap_or_default();
        lines.push(match keep_ends {
            true => &rest[..rest.len() - after.len()],
            false => line,
        });
        rest = after;
    }
    lines.extend((!rest.is_empty()).then_some(rest));
    lines.into_iter().map(Value::from).collect()
}

/// The part of a text that two numbers as in Python's slices name, and the place of its beginning in characters.
fn part<'a>(text: &'a str, range: &[Value]) -> Result<(i64, &'a str), Error> {
    let len = text.chars().count() as i64;
    let place = |at: usize, missing: i64| {
        let place = match range.get(at).filter(|place| !place.is_none()) {
            Some(place) => i64::try_from(place.clone())?,
            None => missing,
        };
        Ok::<_, Error>(if place < 0 { place + len } else { place }.clamp(0, len))
    };
    let (start, end) = (place(0, 0)?, place(1, len)?);
    let byte = |place: i64| {
        let mut places = text.char_indices().map(|(at, _)| at);
        places.nth(place as usize).unwrap_or(text.len())
    };
    Ok((start, &text[byte(start)..byte(end.max(start))]))
}

/// The widest text or indent that a template may ask for: memory for more might not be there.
const WIDEST: usize = 1 << 16;

pub fn allowed(width: usize) -> Result<usize, Error> {
    match width {
        ..=WIDEST => Ok(width),
        _ => Err(refused(format!("a width of {width} is more than {WIDEST}"))),
    }
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

/// A text with a capital at the beginning of each run of letters, and no others.
fn titled(text: &str) -> String {
    let mut is_inside = false;
    let mut titled = String::new();
    for character in text.chars() {
        match is_inside {
            true => titled.extend(character.to_lowercase()),
            false => titled.extend(character.to_uppercase()),
        }
        is_inside = character.is_uppercase() || character.is_lowercase();
    }
    titled
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
            '\n' | '\r' => {
                spaced.push(character);
                column = 0;
            }
            _ => {
                spaced.push(character);
                column += 1;
            }
        }
    }
    spaced
}
