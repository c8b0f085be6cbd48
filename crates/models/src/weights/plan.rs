//! A table applied to a model: which of its parameters are which tensors.

use std::collections::{BTreeMap, BTreeSet};

use burn::{
    module::{Module, ModuleVisitor, Param, Parameter as ParameterValue},
    tensor::{Bool, DType, Int, Tensor, TensorData, kind::Basic},
};

use super::{
    Table, WeightsError, ZEROS,
    layout::Layout,
    pattern::{self, Numbers},
    table::Row,
};

pub(super) struct Parameter {
    pub(super) path: String,
    pub(super) shape: Vec<usize>,
    pub(super) dtype: DType,
    /// Reads its numbers from the device.
    pub(super) numbers: Box<dyn Fn() -> TensorData>,
}

/// A row of the table, with numbers for its placeholders.
pub(super) struct Job {
    /// Parameters side by side, as indices into those of the plan.
    pub(super) target: Vec<usize>,
    /// The tensors side by side: for each, a name for each of the layout's files, or `None` for zeros.
    pub(super) source: Vec<Option<Vec<String>>>,
    pub(super) layout: Layout,
    pub(super) plus_one: bool,
}

/// The jobs for one model.
pub(super) struct Plan {
    pub(super) parameters: Vec<Parameter>,
    pub(super) jobs: Vec<Job>,
    /// The job of every parameter that has one, and its index there, by its path.
    pub(super) job_of: BTreeMap<String, [usize; 2]>,
}

impl Plan {
    pub(super) fn new<M: Module>(table: &Table, model: &M) -> Result<Self, WeightsError> {
        let mut visitor = Visitor::default();
        model.visit(&mut visitor);
        let parameters = visitor.parameters;
        let paths = parameters.iter().enumerate();
        let paths = paths.map(|(at, parameter)| (parameter.path.as_str(), at));
        let paths: BTreeMap<&str, usize> = paths.collect();
        let (mut jobs, mut job_of) = (Vec::new(), BTreeMap::new());
        // The parameters of one job match the same row with the same numbers.
        let mut known = BTreeSet::new();
        // In the order of the parameters, which is the order of names in errors.
        for parameter in &parameters {
            for (at, row) in table.rows.iter().enumerate() {
                let mut names = row.target.0.iter();
                let found = names.find_map(|name| pattern::numbers(name, &parameter.path));
                let Some(mut numbers) = found else {
                    continue;
                };
                if let Some(stacked) = &row.source.stacked {
                    numbers.remove(stacked);
                }
                if !known.insert((at, numbers.clone())) {
                    continue;
                }
                let target = target(row, &numbers, &paths)?;
                for (place, &at) in target.iter().enumerate() {
                    let path = &parameters[at].path;
                    if job_of.insert(path.clone(), [jobs.len(), place]).is_some() {
                        return Err(wrong(row, format!("there is another row for {path}")));
                    }
                }
                jobs.push(Job::new(row, target, &numbers, &parameters)?);
            }
        }
        Ok(Self {
            jobs,
            parameters,
            job_of,
        })
    }

    /// The parameters without a row.
    pub(super) fn unlisted(&self) -> Vec<String> {
        let paths = self.parameters.iter().map(|parameter| &parameter.path);
        let unlisted = paths.filter(|path| !self.job_of.contains_key(*path));
        unlisted.cloned().collect()
    }
}

/// The parameters of a row, as indices into those of the plan; of a stack, those of its first part, then of its second, and so on.
fn target(
    row: &Row,
    numbers: &Numbers,
    paths: &BTreeMap<&str, usize>,
) -> Result<Vec<usize>, WeightsError> {
    let of_numbers = |numbers: &Numbers| -> Vec<String> {
        let names = row.target.0.iter();
        names.map(|name| pattern::filled(name, numbers)).collect()
    };
    let is_there = |path: &String| paths.contains_key(path.as_str());
    let target = match &row.source.stacked {
        None => of_numbers(numbers),
        Some(placeholder) => {
            let braced = format!("{{{placeholder}}}");
            let has = |name: &String| name.contains(&braced);
            if !row.target.0.iter().all(has) || row.source.names.0.iter().any(has) {
                let reason = format!(
                    "{braced} counts a stack: it has to be in all target names, and in no source name"
                );
                return Err(wrong(row, reason));
            }
            let of_index = |index: usize| {
                let mut numbers = numbers.clone();
                numbers.insert(placeholder.clone(), index.to_string());
                of_numbers(&numbers)
            };
            // The stack ends where the model has no more of it.
            let rest = (1..).map(of_index);
            let rest = rest.take_while(|paths| paths.iter().any(is_there));
            of_index(0).into_iter().chain(rest.flatten()).collect()
        }
    };
    let find = |path: &String| {
        let found = paths.get(path.as_str()).copied();
        found.ok_or_else(|| wrong(row, format!("the model has no parameter {path}")))
    };
    target.iter().map(find).collect()
}

impl Job {
    fn new(
        row: &Row,
        target: Vec<usize>,
        numbers: &Numbers,
        parameters: &[Parameter],
    ) -> Result<Self, WeightsError> {
        let wrong = |reason: &str| wrong(row, reason.into());
        let source = &row.source;
        let names = source.names.0.iter().map(|name| match name.as_str() {
            ZEROS => None,
            name => Some(pattern::filled(name, numbers)),
        });
        let names: Vec<Option<String>> = names.collect();
        if source.plus_one && names.contains(&None) {
            return Err(wrong("zeros plus one are ones, which no row can stand for"));
        }
        // The first placeholder that is left in a name counts files.
        let counts_files = |name: &String| pattern::placeholder(name).is_some();
        let has_files = names.iter().flatten().any(counts_files);
        if has_files && !names.iter().flatten().all(counts_files) {
            return Err(wrong(
                "a placeholder that the target does not have has to be in all source names",
            ));
        }
        let shapes = target.iter().map(|&at| parameters[at].shape.as_slice());
        let shapes: Vec<&[usize]> = shapes.collect();
        let stacked = source.stacked.as_ref();
        let stacked = stacked.map(|_| target.len() / row.target.0.len());
        let layout = Layout::new(&shapes, source, stacked, has_files);
        let layout = layout.map_err(|reason| wrong(&reason))?;
        // A name without a placeholder is that of the only file.
        let files = |name: &String| {
            let counter = pattern::placeholder(name).unwrap_or_default();
            let numbers = |file: usize| Numbers::from([(counter.into(), file.to_string())]);
            let files = 0..layout.files;
            files
                .map(|file| pattern::filled(name, &numbers(file)))
                .collect()
        };
        Ok(Self {
            source: names.iter().map(|name| name.as_ref().map(files)).collect(),
            target,
            layout,
            plus_one: source.plus_one,
        })
    }
}

fn wrong(row: &Row, reason: String) -> WeightsError {
    let (target, source) = (row.target.0.join(", "), row.source.names.0.join(", "));
    WeightsError::Table {
        reason: format!("in the row of {target} and {source}, {reason}"),
    }
}

/// Collects the parameters of a model, and initialises none.
#[derive(Default)]
struct Visitor {
    path: Vec<String>,
    parameters: Vec<Parameter>,
}

impl Visitor {
    fn push<const D: usize, K: Basic + 'static>(
        &mut self,
        param: &Param<Tensor<D, K>>,
        dtype: impl Into<DType>,
    ) where
        Tensor<D, K>: ParameterValue,
    {
        let param = param.clone();
        self.parameters.push(Parameter {
            path: self.path.join("."),
            shape: param.lazy_shape().to_vec(),
            dtype: dtype.into(),
            numbers: Box::new(move || param.transform_for_save().val().into_data()),
        });
    }
}

impl ModuleVisitor for Visitor {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.into());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.push(param, dtype(param));
    }

    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
        self.push(param, param.lazy_device().settings().int_dtype);
    }

    fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<D, Bool>>) {
        self.push(param, param.lazy_device().settings().bool_dtype);
    }
}

/// The dtype of a parameter; one that is not initialised yet will have its device's default.
pub(super) fn dtype<const D: usize>(param: &Param<Tensor<D>>) -> DType {
    match param.is_initialized() {
        true => param.dtype(),
        false => param.lazy_device().settings().float_dtype.into(),
    }
}
