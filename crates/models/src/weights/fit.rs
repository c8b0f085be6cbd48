//! Checks that tensors, table and model match, before any number is read.

use std::collections::{BTreeMap, BTreeSet};

use burn::tensor::FloatDType;

use super::{
    Mismatch, Missing, Reason, Table, WeightsError, WrongDType, WrongShape, pattern,
    plan::{Job, Plan},
    source::{Stored, Tensors, count, is_float},
};

/// Options of the user in addition to the table.
#[derive(Clone, Debug, Default)]
pub(super) struct Options {
    pub(super) ignored: Vec<String>,
    pub(super) renamed: Vec<(String, String)>,
    pub(super) partial: bool,
    /// The dtype of parameters that are not initialised yet.
    pub(super) dtype: Option<FloatDType>,
}

/// Tensors by their names in the table.
pub(super) type Named<'a> = BTreeMap<String, Found<'a>>;

/// A tensor and its name in the file.
type Found<'a> = (&'a String, &'a Stored);

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
            if options.partial && job.names().any(|name| !tensors.contains_key(name)) {
                skipped.insert(index);
            } else {
                taken.extend(job.names());
                check(job, plan, &tensors, &mut wrong);
            }
        }
        let read = taken.iter().filter_map(|&name| tensors.get(name));
        let read: BTreeSet<&String> = read.map(|found| found.0).collect();
        let pairs = pairs
            .into_iter()
            .filter(|(_, found)| read.contains(found.0));
        let pairs: Vec<_> = pairs.collect();

        let is_ignored = |name: &str| {
            let mut patterns = options.ignored.iter().chain(&table.ignored);
            patterns.any(|pattern| pattern::matches(name, pattern))
        };
        let left = tensors.iter().filter(|(name, found)| {
            !(taken.contains(name.as_str())
                || tied.contains(*name)
                || is_ignored(name)
                || is_ignored(found.0))
        });
        wrong.unexpected = left.map(|(_, found)| found.0.clone()).collect();
        wrong.unlisted = plan.unlisted();

        let mut not_loaded = NotLoaded::default();
        if options.partial {
            wrong.missing.clear();
            let skipped = skipped.iter().flat_map(|&job| &plan.jobs[job].target);
            let skipped = skipped.map(|&at| plan.parameters[at].path.clone());
            not_loaded.parameters = skipped.chain(wrong.unlisted.drain(..)).collect();
            not_loaded.tensors = std::mem::take(&mut wrong.unexpected);
        }
        compare(&pairs, &mut wrong)?;
        wrong.into_result()?;
        Ok(Self {
            tensors,
            skipped,
            not_loaded,
        })
    }
}

impl Job {
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
    let rules = || options.renamed.iter().chain(&table.renamed);
    if let Some((from, to)) = rules().find(|(from, to)| pattern::count(from) != pattern::count(to))
    {
        return Err(WeightsError::Table {
            reason: format!("{from} cannot be renamed to {to}, which does not have as many *"),
        });
    }
    let mut named = Named::new();
    for found in tensors {
        let name = found.0;
        let renamed = rules().fold(name.clone(), |name, (from, to)| {
            pattern::renamed(&name, from, to).unwrap_or(name)
        });
        if let Some(other) = named.insert(renamed.clone(), found) {
            return Err(WeightsError::Twice {
                name: renamed,
                tensors: [other.0, name].map(String::clone),
            });
        }
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

/// Compares tensors that have to be equal, of which the second is loaded, except those without the shape or the numbers of their parameter: a few bytes
/// of a file can declare any number of numbers.
fn compare(pairs: &[(Found, Found)], wrong: &mut Mismatch) -> Result<(), WeightsError> {
    for &((name, found), (other_name, other)) in pairs {
        let shapes = wrong.shapes.iter().map(|wrong| &wrong.name);
        let mut unfit = shapes.chain(wrong.dtypes.iter().map(|wrong| &wrong.name));
        if unfit.any(|name| name == other_name) {
            continue;
        }
        let are_same = are_same(found, other);
        if !are_same.map_err(|reason| WeightsError::numbers(name, reason))? {
            wrong.untied.push((name.clone(), other_name.clone()));
        }
    }
    Ok(())
}

/// Whether two tensors have the same shape, dtype and numbers.
fn are_same(a: &Stored, b: &Stored) -> Result<bool, Reason> {
    if a.shape != b.shape || a.dtype_name != b.dtype_name {
        return Ok(false);
    }
    // Whole blocks of quantised numbers.
    const MANY: usize = 1 << 14;
    let count = count(&a.shape).ok_or("it has too many numbers")?;
    let [(_, a), (_, b)] = [a.open()?, b.open()?];
    for first in (0..count).step_by(MANY) {
        let numbers = first..count.min(first + MANY);
        if a(numbers.clone())? != b(numbers)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Notes which tensors of a job are missing, and which do not fit.
fn check(job: &Job, plan: &Plan, tensors: &Named, wrong: &mut Mismatch) {
    for (source, names) in job.source.iter().enumerate() {
        for name in names.iter().flatten() {
            let needed = job.layout.shape(source);
            let Some(&(name, stored)) = tensors.get(name) else {
                let (name, shape) = (name.clone(), needed);
                wrong.missing.push(Missing { name, shape });
                continue;
            };
            let mut target = job.target.iter().map(|&at| &plan.parameters[at]);
            let is_unfit = |dtype| stored.dtype.is_none() || !is_float(dtype);
            if let Some(target) = target.find(|target| is_unfit(target.dtype)) {
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
