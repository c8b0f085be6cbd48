//! A `config.json` of Hugging Face's `transformers`, or the same fields from the metadata of a GGUF file. Each of the fields is used, known to change
//! nothing, or refused by name.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use super::{
    PretrainedError, Result,
    error::MODEL_CONFIG,
    fields::{is_equal, of_no_matter},
    gguf,
    json::object,
    source::folder_with,
    wanted::Wanted,
};
use crate::weights::Weights;

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
    pub(super) fields: Map<String, Value>,
    known: BTreeSet<String>,
    /// The tensors of a GGUF file, whose header has its fields too.
    weights: Option<Weights>,
}

impl ConfigFile {
    /// The `config.json` of a folder or of a name on the Hub, or what a GGUF file says itself, for a model of this family.
    pub(crate) fn read(source: &Path, family: &'static str) -> Result<Self> {
        if source.is_file() {
            let (fields, weights) = gguf::fields(source)?;
            let file = Self::of_model(source.into(), family, fields);
            let weights = Some(weights);
            return Ok(Self { weights, ..file });
        }
        let wanted = Wanted::ModelConfig;
        let path = folder_with(source, wanted)?.join(wanted.file());
        let fields = object(&path, MODEL_CONFIG)?;
        Ok(Self::of_model(path, family, fields))
    }

    /// The same file, for the reader of this family.
    pub(crate) fn of_family(self, family: &'static str) -> Self {
        Self { family, ..self }
    }

    /// The tensors, if they are open already, as those of a GGUF file are.
    pub(crate) fn take_weights(&mut self) -> Option<Weights> {
        self.weights.take()
    }

    /// The fields of the `config.json` of a model.
    pub(crate) fn of_model(
        path: PathBuf,
        family: &'static str,
        fields: Map<String, Value>,
    ) -> Self {
        let known = of_no_matter(&fields);
        let file = Self::of_fields(path, family, fields);
        Self { known, ..file }
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
            weights: None,
        }
    }

    /// A field, if it is there and not null.
    fn get(&mut self, field: &str) -> Option<&Value> {
        self.known.insert(field.to_owned());
        self.fields.get(field).filter(|value| !value.is_null())
    }

    /// Refuses a file without this field, which may be null.
    pub(crate) fn needs(&self, field: &str) -> Result<()> {
        self.needed(field, self.fields.get(field).map(drop))
    }

    /// Whether a field is there and not null.
    pub(crate) fn has(&mut self, field: &str) -> bool {
        self.get(field).is_some()
    }

    pub(crate) fn unsupported(&self, field: &str, supported: impl Into<String>) -> PretrainedError {
        let found = self.fields.get(field).map(Value::to_string);
        PretrainedError::Unsupported {
            path: self.path.clone(),
            field: field.to_owned(),
            found: found.map_or("missing".into(), shortened),
            supported: supported.into(),
            family: self.family,
        }
    }

    /// Refuses a field unless a condition holds.
    pub(crate) fn check<S: Into<String>>(
        &self,
        field: &str,
        holds: bool,
        supported: impl FnOnce() -> S,
    ) -> Result<()> {
        match holds {
            true => Ok(()),
            false => Err(self.unsupported(field, supported())),
        }
    }

    /// The meaning of a field, if it is there and not null.
    pub(crate) fn parsed<T>(
        &mut self,
        field: &str,
        expected: &str,
        parse: impl Fn(&Value) -> Option<T>,
    ) -> Result<Option<T>> {
        let parsed = self.get(field).map(parse);
        match parsed {
            Some(None) => Err(self.unsupported(field, expected)),
            parsed => Ok(parsed.flatten()),
        }
    }

    /// The meaning of a field, or `missing` if it is not there. Null is refused, as by transformers.
    pub(crate) fn parsed_or<T>(
        &mut self,
        field: &str,
        expected: &str,
        parse: impl Fn(&Value) -> Option<T>,
        missing: T,
    ) -> Result<T> {
        self.check_not_null(field, expected)?;
        Ok(self.parsed(field, expected, parse)?.unwrap_or(missing))
    }

    /// The value of a field, without which the file is refused.
    pub(crate) fn needed<T>(&self, field: &str, value: Option<T>) -> Result<T> {
        value.ok_or_else(|| PretrainedError::Missing {
            path: self.path.clone(),
            field: field.to_owned(),
            family: self.family,
        })
    }

    /// A size or a count.
    pub(crate) fn size(&mut self, field: &str) -> Result<usize> {
        let size = self.size_if_any(field)?;
        self.needed(field, size)
    }

    /// A number of layers.
    pub(crate) fn layers(&mut self, field: &str) -> Result<usize> {
        self.size(field)?;
        self.layers_or(field, MOST_LAYERS)
    }

    /// A number of layers, or `missing` if the field is not there. Null is refused, as by transformers.
    pub(crate) fn layers_or(&mut self, field: &str, missing: usize) -> Result<usize> {
        let layers = self.size_or(field, missing)?;
        let possible = || format!("1 to {MOST_LAYERS} layers");
        self.check(field, (1..=MOST_LAYERS).contains(&layers), possible)?;
        Ok(layers)
    }

    /// The length of the longest text, if the weights do not give it as well.
    pub(crate) fn positions(&mut self, field: &str) -> Result<usize> {
        match self.size(field)? {
            positions @ ..=MOST_POSITIONS => Ok(positions),
            _ => Err(self.unsupported(field, format!("at most {MOST_POSITIONS} positions"))),
        }
    }

    /// A size or a count, if the field is there and not null.
    pub(crate) fn size_if_any(&mut self, field: &str) -> Result<Option<usize>> {
        let size = self.parsed(field, "a whole number", Value::as_u64)?;
        match size {
            Some(MOST..) => Err(self.unsupported(field, format!("less than {MOST}"))),
            size => Ok(size.map(|size| size as usize)),
        }
    }

    /// A size or a count, or `missing` if the field is not there. Null is refused, as by transformers.
    pub(crate) fn size_or(&mut self, field: &str, missing: usize) -> Result<usize> {
        self.check_not_null(field, "a whole number")?;
        Ok(self.size_if_any(field)?.unwrap_or(missing))
    }

    /// Refuses a size, which is `missing` in a file without the field, if it is not that of the field `other`.
    pub(crate) fn size_as(
        &mut self,
        field: &str,
        missing: usize,
        (other, size): (&str, usize),
    ) -> Result<()> {
        let found = self.size_or(field, missing)?;
        self.check(field, found == size, || format!("{size}, as {other}"))
    }

    /// A list of sizes, or `missing` if the field is not there. Null is refused, as by transformers.
    pub(crate) fn sizes_or(&mut self, field: &str, missing: Vec<usize>) -> Result<Vec<usize>> {
        let sizes = |value: &Value| {
            let sizes = Vec::<u16>::deserialize(value).ok()?;
            Some(sizes.into_iter().map(usize::from).collect())
        };
        self.parsed_or(field, "a list of numbers up to 65535", sizes, missing)
    }

    /// As [`sizes_or`](Self::sizes_or), as many as the field `other` says.
    pub(crate) fn sizes_as(
        &mut self,
        field: &str,
        missing: Vec<usize>,
        (other, count): (&str, usize),
    ) -> Result<Vec<usize>> {
        let sizes = self.sizes_or(field, missing)?;
        let as_many = || format!("{count} numbers, as {other} says");
        self.check(field, sizes.len() == count, as_many)?;
        Ok(sizes)
    }

    /// The value of a field, if the field is there and not null.
    pub(crate) fn value<T: DeserializeOwned>(
        &mut self,
        field: &str,
        expected: &str,
    ) -> Result<Option<T>> {
        self.parsed(field, expected, |value| T::deserialize(value).ok())
    }

    /// A real number, or `missing` if the field is not there. Null is refused, as by transformers.
    pub(crate) fn number(&mut self, field: &str, missing: f64) -> Result<f64> {
        self.parsed_or(field, "a number", Value::as_f64, missing)
    }

    fn check_not_null(&self, field: &str, expected: &str) -> Result<()> {
        let is_null = self.fields.get(field).is_some_and(Value::is_null);
        self.check(field, !is_null, || expected)
    }

    /// A real number, if the field is there and not null.
    pub(crate) fn number_if_any(&mut self, field: &str) -> Result<Option<f64>> {
        self.parsed(field, "a number", Value::as_f64)
    }

    /// The fields of an object, if the field is there and not null; they have to be [finished](Self::finish) as well.
    pub(crate) fn object(&mut self, field: &str) -> Result<Option<Self>> {
        let fields = self.parsed(field, "an object", |value| value.as_object().cloned())?;
        Ok(fields.map(|fields| Self::of_fields(self.path.clone(), self.family, fields)))
    }

    /// The configuration of a part of the model, if the field is there and not null. Unlike those of an [`object`](Self::object), its fields may
    /// say how it was made, run or saved.
    pub(crate) fn part(&mut self, field: &str) -> Result<Option<Self>> {
        let part = self.object(field)?;
        Ok(part.map(|part| Self::of_model(part.path, part.family, part.fields)))
    }

    /// A `ConfigFile` without fields, of the same path.
    pub(crate) fn empty(&self) -> Self {
        Self::of_fields(self.path.clone(), self.family, Map::new())
    }

    pub(crate) fn real(&mut self, field: &str) -> Result<f64> {
        let number = self.number_if_any(field)?;
        self.needed(field, number)
    }

    /// A real number with several names, which have to agree, or `missing` if none of them is there.
    pub(crate) fn number_of(&mut self, fields: &[&str], missing: f64) -> Result<f64> {
        let mut known = None;
        for &field in fields {
            let number = |value: &Value| value.as_f64().map(Some);
            let found = self.parsed_or(field, "a number", number, known)?;
            if let Some(known) = known.filter(|known| found != Some(*known)) {
                return Err(self.unsupported(field, f64::to_string(&known)));
            }
            known = found;
        }
        Ok(known.unwrap_or(missing))
    }

    /// The length that a scaling of rotary positions is meant to reach, although the file still has the length from before it.
    pub(crate) fn reach(&self, field: &str, factor: f64, original: usize) -> Result<usize> {
        let reached = factor * original as f64;
        let possible = || format!("at most {MOST_POSITIONS} positions");
        self.check(field, reached <= MOST_POSITIONS as f64, possible)?;
        Ok(reached as usize)
    }

    /// True or false, or `missing` if the field is not there. Null is refused, as by version 5 of transformers.
    pub(crate) fn flag(&mut self, field: &str, missing: bool) -> Result<bool> {
        self.parsed_or(field, "true or false", Value::as_bool, missing)
    }

    /// Turns the fields of an object, if there is one, into fields `object.field` of this file, so that they can be compared with others
    /// outside the object, unlike those of an [`object`](Self::object).
    pub(crate) fn flatten(&mut self, object: &str) -> Result<()> {
        let fields = self.parsed(object, "an object", |value| value.as_object().cloned())?;
        let fields = fields.into_iter().flatten();
        let named = fields.map(|(field, value)| (format!("{object}.{field}"), value));
        self.fields.extend(named);
        Ok(())
    }

    /// Fields, with spaces between them, that have to have this value, or be missing.
    pub(crate) fn only(&mut self, fields: &str, value: Value) -> Result<()> {
        let mut fields = fields.split_whitespace();
        let is_other = |field: &&str| self.get(field).is_some_and(|it| !is_equal(it, &value));
        match fields.find(is_other) {
            Some(field) => Err(self.unsupported(field, value.to_string())),
            None => Ok(()),
        }
    }

    /// Fields that affect nothing that is computed here, with spaces between them.
    pub(crate) fn ignore(&mut self, fields: &str) {
        self.known
            .extend(fields.split_whitespace().map(str::to_owned));
    }

    /// Checks that every field was read or ignored, and names the others.
    pub(crate) fn finish(self) -> Result<PathBuf> {
        let mut fields = self.fields;
        fields.retain(|field, value| !self.known.contains(field) && !value.is_null());
        if fields.is_empty() {
            return Ok(self.path);
        }
        Err(PretrainedError::Unknown {
            path: self.path,
            fields: fields.into_iter().map(|(field, _)| field).collect(),
            family: self.family,
        })
    }
}

/// The first characters of a value, which can be as long as the file.
fn shortened(value: String) -> String {
    const SHOWN: usize = 100;
    match value.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value,
    }
}
