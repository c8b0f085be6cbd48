//! The filter `tojson` as transformers sets it: what Python's `json.dumps` writes, and not what may stand in HTML.

use std::{
    collections::BTreeMap,
    io::{Result, Write},
};

use minijinja::{
    Error, ErrorKind, Value,
    value::{Kwargs, Rest},
};
use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

/// `tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False)`.
pub fn tojson(
    value: &Value,
    args: Rest<Value>,
    named: Kwargs,
) -> std::result::Result<String, Error> {
    let refused = |problem: String| Error::new(ErrorKind::InvalidOperation, problem);
    if value.is_undefined() {
        return Err(refused("an undefined value has no JSON".into()));
    }
    let argument = |place: usize, name: &str| -> std::result::Result<Option<Value>, Error> {
        let value = match args.get(place) {
            Some(value) => Some(value.clone()),
            None => named.get::<Option<Value>>(name)?,
        };
        Ok(value.filter(|value| !value.is_none()))
    };
    let [ascii, indent, separators, sorted] = [
        argument(0, "ensure_ascii")?,
        argument(1, "indent")?,
        argument(2, "separators")?,
        argument(3, "sort_keys")?,
    ];
    named.assert_all_used()?;
    let indent = match indent {
        Some(indent) => Some(match indent.as_str() {
            Some(text) => text.to_string(),
            None => " ".repeat(usize::try_from(indent)?),
        }),
        None => None,
    };
    let [between, after_key] = match separators {
        Some(separators) => [
            separators.get_item_by_index(0)?,
            separators.get_item_by_index(1)?,
        ]
        .map(|separator| separator.to_string()),
        None if indent.is_some() => [",", ": "].map(String::from),
        None => [", ", ": "].map(String::from),
    };
    let mut written = Vec::new();
    let style = Python {
        between,
        after_key,
        indent,
        depth: 0,
        is_empty: true,
    };
    let mut serializer = Serializer::with_formatter(&mut written, style);
    let serialized = match sorted.is_some_and(|sorted| sorted.is_true()) {
        true => sorted_keys(value).serialize(&mut serializer),
        false => value.serialize(&mut serializer),
    };
    serialized.map_err(|error| refused(error.to_string()))?;
    let text = String::from_utf8(written).map_err(|error| refused(error.to_string()))?;
    Ok(match ascii.is_some_and(|ascii| ascii.is_true()) {
        true => escaped(&text),
        false => text,
    })
}

/// The value with the keys of every mapping in order.
fn sorted_keys(value: &Value) -> Value {
    use minijinja::value::ValueKind::{Iterable, Map, Seq};
    let items = value.try_iter().into_iter().flatten();
    match value.kind() {
        Map => {
            let pair = |key: Value| {
                let item = value.get_item(&key).unwrap_or_default();
                (key, sorted_keys(&item))
            };
            Value::from(items.map(pair).collect::<BTreeMap<_, _>>())
        }
        Seq | Iterable => items.map(|item| sorted_keys(&item)).collect(),
        _ => value.clone(),
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
        _ if value.is_infinite() && value > 0.0 => "Infinity".into(),
        _ if value.is_infinite() => "-Infinity".into(),
        0.0 => format!("{value:?}"),
        _ if (-4..16).contains(&power) && value.fract() == 0.0 => format!("{value:.1}"),
        _ if (-4..16).contains(&power) => value.to_string(),
        _ if power < 0 => format!("{digits}e-{:02}", -power),
        _ => format!("{digits}e+{power:02}"),
    }
}

/// Python's separators, indentation and numbers.
struct Python {
    between: String,
    after_key: String,
    indent: Option<String>,
    depth: usize,
    /// Whether the innermost list or mapping is empty so far.
    is_empty: bool,
}

impl Python {
    fn begin<W: Write + ?Sized>(&mut self, out: &mut W, bracket: &[u8]) -> Result<()> {
        self.depth += 1;
        self.is_empty = true;
        out.write_all(bracket)
    }

    fn end<W: Write + ?Sized>(&mut self, out: &mut W, bracket: &[u8]) -> Result<()> {
        self.depth -= 1;
        if !self.is_empty {
            self.new_line(out)?;
        }
        self.is_empty = false;
        out.write_all(bracket)
    }

    fn item<W: Write + ?Sized>(&mut self, out: &mut W, first: bool) -> Result<()> {
        if !first {
            out.write_all(self.between.as_bytes())?;
        }
        self.is_empty = false;
        self.new_line(out)
    }

    fn new_line<W: Write + ?Sized>(&self, out: &mut W) -> Result<()> {
        match &self.indent {
            Some(indent) => write!(out, "\n{}", indent.repeat(self.depth)),
            None => Ok(()),
        }
    }
}

impl Formatter for Python {
    fn write_f64<W: Write + ?Sized>(&mut self, out: &mut W, value: f64) -> Result<()> {
        out.write_all(number(value).as_bytes())
    }

    fn begin_array<W: Write + ?Sized>(&mut self, out: &mut W) -> Result<()> {
        self.begin(out, b"[")
    }

    fn end_array<W: Write + ?Sized>(&mut self, out: &mut W) -> Result<()> {
        self.end(out, b"]")
    }

    fn begin_array_value<W: Write + ?Sized>(&mut self, out: &mut W, first: bool) -> Result<()> {
        self.item(out, first)
    }

    fn begin_object<W: Write + ?Sized>(&mut self, out: &mut W) -> Result<()> {
        self.begin(out, b"{")
    }

    fn end_object<W: Write + ?Sized>(&mut self, out: &mut W) -> Result<()> {
        self.end(out, b"}")
    }

    fn begin_object_key<W: Write + ?Sized>(&mut self, out: &mut W, first: bool) -> Result<()> {
        self.item(out, first)
    }

    fn begin_object_value<W: Write + ?Sized>(&mut self, out: &mut W) -> Result<()> {
        out.write_all(self.after_key.as_bytes())
    }
}
