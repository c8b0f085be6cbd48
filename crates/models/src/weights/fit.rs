//! Checks that tensors, table and model match, before any number is read.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    io::Read,
};

use burn::tensor::FloatDType;

use super::{
    Mismatch, Missing, Table, WeightsError, WrongDType, WrongShape, pattern,
    plan::{Job, Plan},
    source::{Stored, Tensors, is_float},
};

/// What the user allows in addition to the table.
#[derive(Clone, Debug, Default)]
pub(super) struct Options {
    pub(super) ignored: Vec<String>,
    pub(super) renamed: Vec<(String, String)>,
    pub(super) partial: bool,
    /// Of parameters that are not initialised yet.
    pub(super) dtype: Option<FloatDType>,
}

/// Tensors by their names in the table.
pub(super) type Named<'a> = BTreeMap<String, Found<'a>>;

/// A tensor of a file.
#[derive(Clone, Copy)]
pub(super) struct Found<'a> {
    /// Its name in the file.
    name: &'a str,
    pub(super) stored: &'a Stored,
}

/// What [`Weights::load`](super::Weights::load) did not load: nothing, unless it was told to be [`partial`](super::Weights::partial).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotLoaded {
    /// Parameters of the model that were left unchanged.
    pub parameters: Vec<String>,
    /// Tensors of the files that no parameter took.
    pub tensors: Vec<String>,
}

/// What is to be loaded.
pub(super) struct Fit<'a> {
    pub(super) tensors: Named<'a>,
    /// The jobs to leave out.
    pub(super) skipped: BTreeSet<usize>,
    pub(super) not_loaded: NotLoaded,
}

impl<'a> Fit<'a> {
    /// # Errors
    ///
    /// Everything that does not fit.
    pub(super) fn new(
        tensors: &'a Tensors,
        table: &Table,
        plan: &Plan,
        options: &Options,
    ) -> Result<Self, WeightsError> {
        let mut tensors = renamed(tensors, table, options)?;
        let mut wrong = Mismatch::default();
        let (tied, pairs) = tie(table, &mut tensors);

        let mut taken = BTreeSet::new();
        let mut skipped = BTreeSet::new();
        for (index, job) in plan.jobs.iter().enumerate() {
            let is_skipped = options.partial && job.names().any(|name| !tensors.contains_key(name));
            match is_skipped {
                true => drop(skipped.insert(index)),
                false => taken.extend(job.names()),
            }
            check(job, plan, &tensors, is_skipped, &mut wrong);
        }

        let ignored = options.ignored.iter().chain(&table.ignored);
        let ignored: Vec<&String> = ignored.collect();
        let is_ignored = |name: &str| {
            ignored
                .iter()
                .any(|pattern| pattern::matches(name, pattern))
        };
        let left = tensors.iter().filter(|(name, found)| {
            !(taken.contains(name.as_str())
                || tied.contains(*name)
                || is_ignored(name)
                || is_ignored(found.name))
        });
        wrong.unexpected = left.map(|(_, found)| found.name.to_string()).collect();
        wrong.unlisted = plan.unlisted();

        let mut not_loaded = NotLoaded::default();
        if options.partial {
            let skipped = skipped.iter().flat_map(|&job| &plan.jobs[job].target);
            let skipped = skipped.map(|&at| plan.parameters[at].path.clone());
            not_loaded.parameters = skipped.chain(wrong.unlisted.drain(..)).collect();
            not_loaded.tensors = std::mem::take(&mut wrong.unexpected);
        }
        compare(&pairs, &mut wrong)?;
        if wrong != Mismatch::default() {
            return Err(WeightsError::Mismatch(Box::new(wrong)));
        }
        Ok(Self {
            tensors,
            skipped,
            not_loaded,
        })
    }
}

impl Job {
    /// The names of all its tensors.
    fn names(&self) -> impl Iterator<Item = &str> {
        let names = self.source.iter().flatten().flatten();
        names.map(String::as_str)
    }
}

fn renamed<'a>(
    tensors: &'a Tensors,
    table: &Table,
    options: &Options,
) -> Result<Named<'a>, WeightsError> {
    let rules: Vec<_> = options.renamed.iter().chain(&table.renamed).collect();
    let wrong = |reason: String| WeightsError::Table { reason };
    for (from, to) in &rules {
        if pattern::count(from) != pattern::count(to) {
            return Err(wrong(format!(
                "{from} cannot be renamed to {to}, which does not have as many *"
            )));
        }
    }
    let mut named = Named::new();
    for (name, stored) in tensors {
        let renamed = rules.iter().fold(name.clone(), |name, (from, to)| {
            pattern::renamed(&name, from, to).unwrap_or(name)
        });
        match named.entry(renamed) {
            Entry::Vacant(entry) => entry.insert(Found { name, stored }),
            Entry::Occupied(entry) => {
                let [other, name, renamed] =
                    [entry.get().name, name.as_str(), entry.key().as_str()].map(str::escape_debug);
                return Err(wrong(format!(
                    "tensors {other} and {name} are both renamed to {renamed}"
                )));
            }
        };
    }
    Ok(named)
}

/// Lets tensors that are tied in the table stand in for each other. Returns the names of those that need no row, and the pairs that have to
/// be equal.
fn tie<'a>(
    table: &Table,
    tensors: &mut Named<'a>,
) -> (BTreeSet<String>, Vec<(Found<'a>, Found<'a>)>) {
    let (mut tied, mut equal) = (BTreeSet::new(), Vec::new());
    for (template, original) in &table.tied {
        let pairs = tensors.iter().filter_map(|(name, &found)| {
            let numbers = pattern::numbers(template, name)?;
            Some((name.clone(), found, pattern::filled(original, &numbers)))
        });
        for (name, found, original) in pairs.collect::<Vec<_>>() {
            tied.insert(name);
            match tensors.get(&original) {
                Some(&other) => equal.push((found, other)),
                None => drop(tensors.insert(original, found)),
            }
        }
    }
    (tied, equal)
}

/// Compares tensors that have to be equal, except those without the shape of their parameter: a few bytes of a file can declare any number
/// of numbers.
fn compare(pairs: &[(Found, Found)], wrong: &mut Mismatch) -> Result<(), WeightsError> {
    let misshapen: Vec<String> = wrong
        .shapes
        .iter()
        .map(|shape| shape.name.clone())
        .collect();
    for (found, other) in pairs {
        if misshapen.iter().any(|name| *name == other.name) {
            continue;
        }
        let same = match found.stored.shape == other.stored.shape {
            true => are_same(found.stored, other.stored),
            false => Ok(false),
        };
        let same = same.map_err(|reason| WeightsError::Numbers {
            name: found.name.into(),
            reason,
        })?;
        if !same {
            wrong.untied.push((found.name.into(), other.name.into()));
        }
    }
    Ok(())
}

/// Whether two tensors have the same shape, dtype and bits.
fn are_same(a: &Stored, b: &Stored) -> Result<bool, String> {
    if a.shape != b.shape || a.dtype_name != b.dtype_name {
        return Ok(false);
    }
    let [mut a, mut b] = [a.read_from(0)?, b.read_from(0)?];
    let [mut a_bytes, mut b_bytes] = [Vec::new(), Vec::new()];
    loop {
        for (reader, bytes) in [(&mut a, &mut a_bytes), (&mut b, &mut b_bytes)] {
            bytes.clear();
            let read = reader.take(1 << 16).read_to_end(bytes);
            read.map_err(|error| error.to_string())?;
        }
        if a_bytes != b_bytes {
            return Ok(false);
        }
        if a_bytes.is_empty() {
            return Ok(true);
        }
    }
}

/// Notes which tensors of a job are missing, if that matters, and which do not fit.
fn check(job: &Job, plan: &Plan, tensors: &Named, may_miss: bool, wrong: &mut Mismatch) {
    for (source, tensor) in job.source.iter().enumerate() {
        let Some(names) = tensor else {
            continue;
        };
        for name in names {
            let needed = job.layout.shape(source);
            let Some(&Found { name, stored }) = tensors.get(name) else {
                if !may_miss {
                    let (name, shape) = (name.clone(), needed);
                    wrong.missing.push(Missing { name, shape });
                }
                continue;
            };
            let mut target = job.target.iter().map(|&at| &plan.parameters[at]);
            if let Some(target) =
                target.find(|target| stored.dtype.is_none() || !is_float(target.dtype))
            {
                wrong.dtypes.push(WrongDType {
                    name: name.into(),
                    found: stored.dtype_name.clone(),
                    parameter: target.path.clone(),
                    needed: target.dtype,
                });
            }
            if stored.shape != needed {
                wrong.shapes.push(WrongShape {
                    name: name.into(),
                    found: stored.shape.clone(),
                    needed,
                });
            }
        }
    }
}
