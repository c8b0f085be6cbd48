//! The filter `tojson` as transformers sets it: what Python's `json.dumps` writes, without escapes for HTML.

use minijinja::{
    Error, Value,
    value::{Kwargs, Rest, ValueKind},
};

use super::python::{allowed, refused};

/// `tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False)`.
pub fn tojson(value: &Value, args: Rest<Value>, named: Kwargs) -> Result<String, Error> {
    let argument = |place: usize, name: &str| -> Result<Option<Value>, Error> {
        let value = match args.get(place) {
            Some(value) => Some(value.clone()),
            None => named.get::<Option<Value>>(name)?,
        };
        Ok(value.filter(|value| !value.is_none()))
    };
    let ascii = argument(0, "ensure_ascii")?;
    let indent = argument(1, "indent")?;
    let separators = argument(2, "separators")?;
    let sorted = argument(3, "sort_keys")?;
    named.assert_all_used()?;
    let indent = match indent {
        Some(indent) => Some(match indent.as_str() {
            Some(text) => text.to_string(),
            None => " ".repeat(allowed(usize::try_from(indent)?)?),
        }),
        None => None,
    };
    let [between, after_key] = match separators {
        Some(separators) => [0, 1].map(|place| separators.get_item_by_index(place)),
        None if indent.is_some() => [",", ": "].map(|separator| Ok(separator.into())),
        None => [", ", ": "].map(|separator| Ok(separator.into())),
    };
    let style = Style {
        between: between?.to_string(),
        after_key: after_key?.to_string(),
        indent,
        sorted: sorted.is_some_and(|sorted| sorted.is_true()),
    };
    let json = style.json(value, 0)?;
    Ok(match ascii.is_some_and(|ascii| ascii.is_true()) {
        true => escaped(&json),
        false => json,
    })
}

/// The options of `json.dumps`.
struct Style {
    between: String,
    after_key: String,
    indent: Option<String>,
    sorted: bool,
}

impl Style {
    /// The JSON of a value inside `depth` lists and mappings.
    fn json(&self, value: &Value, depth: usize) -> Result<String, Error> {
        let [open, close] = match value.kind() {
            ValueKind::Undefined => return Err(refused("an undefined value has no JSON")),
            ValueKind::Number if !value.is_integer() => {
                return Ok(number(f64::try_from(value.clone())?));
            }
            ValueKind::Map => ["{", "}"],
            ValueKind::Seq | ValueKind::Iterable => ["[", "]"],
            _ => return serde_json::to_string(value).map_err(|error| refused(error.to_string())),
        };
        let mut items: Vec<Value> = value.try_iter()?.checked().collect::<Result<_, _>>()?;
        if items.is_empty() {
            return Ok([open, close].concat());
        }
        let is_map = value.kind() == ValueKind::Map;
        if is_map && self.sorted {
            items.sort();
        }
        let items = items.iter().map(|item| match is_map {
            true => {
                let value = self.json(&value.get_item(item)?, depth + 1)?;
                Ok(self.key(item)? + &self.after_key + &value)
            }
            false => self.json(item, depth + 1),
        });
        let items: Vec<String> = items.collect::<Result<_, Error>>()?;
        let new_line = |depth: usize| match &self.indent {
            Some(indent) => format!("\n{}", indent.repeat(depth)),
            None => String::new(),
        };
        let inner = new_line(depth + 1);
        let items = items.join(&format!("{}{inner}", self.between));
        Ok([open, &inner, &items, &new_line(depth), close].concat())
    }

    /// The key of a mapping, which in JSON is a text.
    fn key(&self, key: &Value) -> Result<String, Error> {
        match key.kind() {
            ValueKind::String => self.json(key, 0),
            ValueKind::Bool | ValueKind::Number => Ok(format!("\"{}\"", self.json(key, 0)?)),
            kind => Err(refused(format!("a key of JSON cannot be a {kind}"))),
        }
    }
}

/// JSON in ASCII. Only texts have other characters.
fn escaped(json: &str) -> String {
    let mut ascii = String::new();
    for character in json.chars() {
        match character.is_ascii() {
            true => ascii.push(character),
            false => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    ascii += &format!("\\u{unit:04x}");
                }
            }
        }
    }
    ascii
}

/// A number as Python's `repr` writes it: in digits from 0.0001 to 10¹⁶, with an exponent of two digits at least beyond.
fn number(value: f64) -> String {
    let exponent = format!("{value:e}");
    let (digits, power) = exponent.split_once('e').unwrap_or((&exponent, "0"));
    let power: i32 = power.parse().unwrap_or(0);
    match value {
        _ if value.is_nan() => "NaN".into(),
        f64::INFINITY => "Infinity".into(),
        f64::NEG_INFINITY => "-Infinity".into(),
        _ if (-4..16).contains(&power) => format!("{value:?}"),
        _ if power < 0 => format!("{digits}e-{:02}", -power),
        _ => format!("{digits}e+{power:02}"),
    }
}
