//! A `config.json` of Hugging Face's `transformers`, or the same fields from the metadata of a GGUF file. Each of the fields is used, known to change
//! nothing, or refused by name.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use burn_attn::FeedForwardActivation;
use serde_json::{Map, Value};

use super::{
    PretrainedError,
    activations::ACTIVATIONS,
    fields::of_no_matter,
    gguf,
    json::{is_equal, object},
    source::folder_with,
    wanted::Wanted,
};
use crate::weights::{Format, format, lfs_pointer};

/// More than any size in practice, and small enough that twice the product of two does not overflow.
const MOST: u64 = 1 << 31;
/// The most layers accepted: published models have a few hundred, and each takes memory before any weight is read.
const MOST_LAYERS: usize = 10_000;
/// The longest text accepted for a model whose position tables are computed: published ones have ten million tokens at most.
pub(super) const MOST_POSITIONS: usize = 1 << 24;

/// The fields of a `config.json`, all of which have to be read.
pub(crate) struct ConfigFile {
    path: PathBuf,
    family: &'static str,
    fields: Map<String, Value>,
    known: BTreeSet<String>,
}

impl ConfigFile {
    /// The `config.json` of a folder or of a name on the Hub, or what a GGUF file says itself, for a model of this family.
    pub(crate) fn read(source: &Path, family: &'static str) -> Result<Self, PretrainedError> {
        let (path, fields) = match source.is_file() {
            true => (source.into(), of_gguf(source)?),
            false => {
                let wanted = Wanted::ModelConfig;
                let path = folder_with(source, wanted)?.join(wanted.file());
                let fields = object(&path)?;
                (path, fields)
            }
        };
        let known = of_no_matter(&fields);
        let file = Self::of_fields(path, family, fields);
        Ok(Self { known, ..file })
    }

    /// The fields of another file than the `config.json` of the model.
    pub(crate) fn of_fields(
        path: PathBuf,
        family: &'static str,
        fields: Map<String, Value>,
    ) -> Self {
        Self {
            path,
            family,
            fields,
            known: BTreeSet::new(),
        }
    }

    /// A field, if it is there and not null.
    fn get(&mut self, field: &str) -> Option<&Value> {
        self.known.insert(field.to_owned());
        self.fields.get(field).filter(|value| !value.is_null())
    }

    /// Refuses a file without this field, which may be null.
    pub(crate) fn needs(&self, field: &str) -> Result<(), PretrainedError> {
        self.needed(field, self.fields.get(field).map(drop))
    }

    /// Whether a field is there and not null.
    pub(crate) fn has(&mut self, field: &str) -> bool {
        self.get(field).is_some()
    }

    pub(crate) fn unsupported(&self, field: &str, supported: impl Into<String>) -> PretrainedError {
        let found = self
            .fields
            .get(field)
            .map(|value| shortened(value.to_string()));
        PretrainedError::Unsupported {
            path: self.path.clone(),
            field: field.to_owned(),
            found: found.unwrap_or_else(|| "missing".into()),
            supported: supported.into(),
            family: self.family,
        }
    }

    /// The meaning of a field, if it is there and not null.
    pub(crate) fn parsed<T>(
        &mut self,
        field: &str,
        expected: &str,
        parse: impl Fn(&Value) -> Option<T>,
    ) -> Result<Option<T>, PretrainedError> {
        let Some(value) = self.get(field) else {
            return Ok(None);
        };
        match parse(value) {
            Some(value) => Ok(Some(value)),
            None => Err(self.unsupported(field, expected)),
        }
    }

    fn needed<T>(&self, field: &str, value: Option<T>) -> Result<T, PretrainedError> {
        value.ok_or_else(|| PretrainedError::Missing {
            path: self.path.clone(),
            field: field.to_owned(),
            family: self.family,
        })
    }

    /// A size or a count.
    pub(crate) fn size(&mut self, field: &str) -> Result<usize, PretrainedError> {
        let size = self.size_if_any(field)?;
        self.needed(field, size)
    }

    /// A number of layers.
    pub(crate) fn layers(&mut self, field: &str) -> Result<usize, PretrainedError> {
        match self.size(field)? {
            layers @ 1..=MOST_LAYERS => Ok(layers),
            _ => Err(self.unsupported(field, format!("1 to {MOST_LAYERS} layers"))),
        }
    }

    /// The length of the longest text, if the weights do not give it as well.
    pub(crate) fn positions(&mut self, field: &str) -> Result<usize, PretrainedError> {
        match self.size(field)? {
            positions @ ..=MOST_POSITIONS => Ok(positions),
            _ => Err(self.unsupported(field, format!("at most {MOST_POSITIONS} positions"))),
        }
    }

    /// A size or a count, if the field is there and not null.
    pub(crate) fn size_if_any(&mut self, field: &str) -> Result<Option<usize>, PretrainedError> {
        let size = self.parsed(field, "a whole number", Value::as_u64)?;
        match size {
            Some(MOST..) => Err(self.unsupported(field, format!("less than {MOST}"))),
            size => Ok(size.map(|size| size as usize)),
        }
    }

    /// A size or a count, or `missing` if the field is not there. Null is refused, as by transformers.
    pub(crate) fn size_or(
        &mut self,
        field: &str,
        missing: usize,
    ) -> Result<usize, PretrainedError> {
        self.check_not_null(field, "a whole number")?;
        Ok(self.size_if_any(field)?.unwrap_or(missing))
    }

    /// A list of sizes, if the field is there and not null.
    pub(crate) fn sizes_if_any(
        &mut self,
        field: &str,
    ) -> Result<Option<Vec<usize>>, PretrainedError> {
        self.parsed(field, "a list of whole numbers", |value| {
            let sizes = value.as_array()?.iter();
            let sizes = sizes.map(|size| usize::try_from(size.as_u64()?).ok());
            sizes.collect()
        })
    }

    /// A list of real numbers, if the field is there and not null.
    pub(crate) fn numbers_if_any(
        &mut self,
        field: &str,
    ) -> Result<Option<Vec<f64>>, PretrainedError> {
        self.parsed(field, "a list of numbers", |value| {
            value.as_array()?.iter().map(Value::as_f64).collect()
        })
    }

    /// A real number, or `missing` if the field is not there. Null is refused, as by transformers.
    pub(crate) fn number(&mut self, field: &str, missing: f64) -> Result<f64, PretrainedError> {
        self.check_not_null(field, "a number")?;
        Ok(self.number_if_any(field)?.unwrap_or(missing))
    }

    fn check_not_null(&self, field: &str, expected: &str) -> Result<(), PretrainedError> {
        match self.fields.get(field) {
            Some(Value::Null) => Err(self.unsupported(field, expected)),
            _ => Ok(()),
        }
    }

    /// A real number, if the field is there and not null.
    pub(crate) fn number_if_any(&mut self, field: &str) -> Result<Option<f64>, PretrainedError> {
        self.parsed(field, "a number", Value::as_f64)
    }

    /// The fields of an object, if the field is there and not null; they have to be [finished](Self::finish) as well.
    pub(crate) fn object(&mut self, field: &str) -> Result<Option<Self>, PretrainedError> {
        let fields = self.parsed(field, "an object", |value| value.as_object().cloned())?;
        Ok(fields.map(|fields| Self::of_fields(self.path.clone(), self.family, fields)))
    }

    /// The meanings of a list of these texts, if the field is there and not null.
    pub(crate) fn choices<T: Clone>(
        &mut self,
        field: &str,
        choices: &[(&str, T)],
    ) -> Result<Option<Vec<T>>, PretrainedError> {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        self.parsed(field, &format!("a list of {}", names.join(", ")), |value| {
            let items = value.as_array()?.iter();
            let meanings = items.map(|item| {
                let found = choices.iter().find(|(name, _)| item.as_str() == Some(name));
                found.map(|(_, choice)| choice.clone())
            });
            meanings.collect()
        })
    }

    /// A real number that has to be there.
    pub(crate) fn real(&mut self, field: &str) -> Result<f64, PretrainedError> {
        let number = self.number_if_any(field)?;
        self.needed(field, number)
    }

    /// A real number with several names, which have to agree, or `missing` if none of them is there.
    pub(crate) fn number_of(
        &mut self,
        fields: &[&str],
        missing: f64,
    ) -> Result<f64, PretrainedError> {
        let mut known: Option<f64> = None;
        for &field in fields {
            self.check_not_null(field, "a number")?;
            let Some(found) = self.number_if_any(field)? else {
                continue;
            };
            match known {
                Some(known) if known != found => {
                    return Err(self.unsupported(field, known.to_string()));
                }
                _ => known = Some(found),
            }
        }
        Ok(known.unwrap_or(missing))
    }

    /// The length that a scaling of rotary positions is meant to reach, although the file still has the length from before it.
    pub(crate) fn reach(
        &self,
        field: &str,
        factor: f64,
        original: usize,
    ) -> Result<usize, PretrainedError> {
        let reached = factor * original as f64;
        match reached > MOST_POSITIONS as f64 {
            true => Err(self.unsupported(field, format!("at most {MOST_POSITIONS} positions"))),
            false => Ok(reached as usize),
        }
    }

    /// True or false, or `missing` if the field is not there. Null is refused, as by version 5 of transformers.
    pub(crate) fn flag(&mut self, field: &str, missing: bool) -> Result<bool, PretrainedError> {
        self.check_not_null(field, "true or false")?;
        let flag = self.parsed(field, "true or false", Value::as_bool)?;
        Ok(flag.unwrap_or(missing))
    }

    /// Turns the fields of an object, if there is one, into fields `object.field` of this file, so that they can be compared with others
    /// outside the object, unlike those of an [`object`](Self::object).
    pub(crate) fn flatten(&mut self, object: &str) -> Result<(), PretrainedError> {
        let fields = self.parsed(object, "an object", |value| value.as_object().cloned())?;
        let fields = fields.into_iter().flatten();
        let named = fields.map(|(field, value)| (format!("{object}.{field}"), value));
        self.fields.extend(named);
        Ok(())
    }

    /// The meaning of one of these texts; that of the first if the field is missing. Null is refused, as by transformers.
    pub(crate) fn choice<T: Clone>(
        &mut self,
        field: &str,
        choices: &[(&str, T)],
    ) -> Result<T, PretrainedError> {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        self.check_not_null(field, &names.join(", "))?;
        let choice = self.parsed(field, &names.join(", "), |value| {
            let text = value.as_str()?;
            let found = choices.iter().find(|(name, _)| *name == text);
            found.map(|(_, choice)| choice.clone())
        })?;
        Ok(choice.unwrap_or_else(|| choices[0].1.clone()))
    }

    /// One of these texts, in the field `name` or in the field with its older name; if it is in both, they have to agree: version 4 of transformers
    /// prefers the older name in most families, version 5 nowhere.
    pub(crate) fn kind(
        &mut self,
        [name, older]: [&str; 2],
        kinds: &[&'static str],
    ) -> Result<&'static str, PretrainedError> {
        let choices: Vec<_> = kinds.iter().map(|kind| (*kind, *kind)).collect();
        if !self.has(name) {
            return self.choice(older, &choices);
        }
        let kind = self.choice(name, &choices)?;
        self.only(older, kind.into())?;
        Ok(kind)
    }

    /// The activation of a feed-forward network, or `missing` if the field is not there.
    pub(crate) fn activation(
        &mut self,
        field: &str,
        missing: FeedForwardActivation,
    ) -> Result<FeedForwardActivation, PretrainedError> {
        match self.fields.contains_key(field) {
            true => self.choice(field, &ACTIVATIONS),
            false => Ok(missing),
        }
    }

    /// A field that has to have this value, or be missing.
    pub(crate) fn only(&mut self, field: &str, value: Value) -> Result<(), PretrainedError> {
        match self.get(field) {
            Some(found) if !is_equal(found, &value) => {
                Err(self.unsupported(field, value.to_string()))
            }
            _ => Ok(()),
        }
    }

    /// A field that affects nothing that is computed here.
    pub(crate) fn ignore(&mut self, field: &str) {
        self.known.insert(field.to_owned());
    }

    /// Checks that every field was read or ignored, and names the others.
    pub(crate) fn finish(self) -> Result<PathBuf, PretrainedError> {
        let fields = self.fields.into_iter();
        let unknown: Vec<String> = fields
            .filter(|(field, value)| !self.known.contains(field) && !value.is_null())
            .map(|(field, _)| field)
            .collect();
        match unknown.is_empty() {
            true => Ok(self.path),
            false => Err(PretrainedError::Unknown {
                path: self.path,
                fields: unknown,
                family: self.family,
            }),
        }
    }
}

/// The fields of a GGUF file.
fn of_gguf(path: &Path) -> Result<Map<String, Value>, PretrainedError> {
    let fields = format(path).and_then(|format| match format {
        Format::Gguf => gguf::fields(path),
        _ => Err(lfs_pointer(path).unwrap_or_else(|| {
            "it is no GGUF file; a model of transformers is named by its folder".into()
        })),
    });
    fields.map_err(|reason| PretrainedError::File {
        path: path.into(),
        reason,
    })
}

/// The first characters of a value, which can be as long as the file.
fn shortened(value: String) -> String {
    const SHOWN: usize = 100;
    match value.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value,
    }
}
