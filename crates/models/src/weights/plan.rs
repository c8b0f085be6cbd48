//! A table applied to a model: which of its parameters are which tensors.

use std::collections::{BTreeMap, BTreeSet};

use burn::{
    module::{Module, ModuleVisitor, Param},
    tensor::{Bool, DType, Int, Tensor, TensorData},
};

use super::{Table, WeightsError, ZEROS, layout::Layout, pattern, table::Row};

/// A parameter of the model.
pub(super) struct Parameter {
    pub(super) path: String,
    pub(super) shape: Vec<usize>,
    pub(super) dtype: DType,
    numbers: Box<dyn Fn() -> TensorData>,
}

impl Parameter {
    /// Its numbers, read from the device.
    pub(super) fn numbers(&self) -> TensorData {
        (self.numbers)()
    }
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
    /// For every parameter, its job and its index there.
    jobs_of: Vec<Option<[usize; 2]>>,
    /// The index of every parameter by its path.
    indices: BTreeMap<String, usize>,
}

impl Plan {
    /// # Errors
    ///
    /// When a row contradicts itself, the model or another row.
    pub(super) fn new<M: Module>(table: &Table, model: &M) -> Result<Self, WeightsError> {
        let mut visitor = Visitor::default();
        model.visit(&mut visitor);
        let parameters = visitor.parameters;
        let paths = parameters.iter().enumerate();
        let paths: BTreeMap<&str, usize> = paths
            .map(|(at, parameter)| (parameter.path.as_str(), at))
            .collect();
        let mut jobs = Vec::new();
        for row in &table.rows {
            // Several parameters of a job lead to the same numbers.
            let mut known = BTreeSet::new();
            for parameter in &parameters {
                let mut names = row.target.0.iter();
                let Some(numbers) = names.find_map(|name| pattern::numbers(name, &parameter.path))
                else {
                    continue;
                };
                let numbers = row.numbers_of_source(numbers);
                if known.insert(numbers.clone()) {
                    let target = target(row, &numbers, &paths)?;
                    jobs.push((row, Job::new(row, target, &numbers, &parameters)?));
                }
            }
        }
        // In the order of the parameters, in which errors name what does not fit.
        jobs.sort_by_key(|(_, job)| job.target.iter().min().copied());
        let mut jobs_of: Vec<Option<[usize; 2]>> = vec![None; parameters.len()];
        for (index, (row, job)) in jobs.iter().enumerate() {
            for (place, &at) in job.target.iter().enumerate() {
                if jobs_of[at].replace([index, place]).is_some() {
                    let path = &parameters[at].path;
                    return Err(wrong(row, format!("there is another row for {path}")));
                }
            }
        }
        let jobs = jobs.into_iter().map(|(_, job)| job).collect();
        let indices = paths.into_iter().map(|(path, at)| (path.to_owned(), at));
        Ok(Self {
            indices: indices.collect(),
            parameters,
            jobs,
            jobs_of,
        })
    }

    /// The job of a parameter, and its index there.
    pub(super) fn job_of(&self, path: &str) -> Option<[usize; 2]> {
        self.jobs_of[*self.indices.get(path)?]
    }

    /// The parameters without a row.
    pub(super) fn unlisted(&self) -> Vec<String> {
        let parameters = self.parameters.iter().zip(&self.jobs_of);
        let unlisted = parameters.filter(|(_, job)| job.is_none());
        unlisted
            .map(|(parameter, _)| parameter.path.clone())
            .collect()
    }
}

impl Row {
    /// The numbers in the source names, without that of the axis that counts targets.
    fn numbers_of_source(&self, numbers: pattern::Numbers) -> pattern::Numbers {
        let stacked = self.source.stacked.as_ref();
        let numbers = numbers.into_iter();
        numbers.filter(|(name, _)| Some(name) != stacked).collect()
    }
}

/// The parameters of a row, as indices into those of the plan; of a stack, those of its first part, then of its second, and so on.
fn target(
    row: &Row,
    numbers: &pattern::Numbers,
    paths: &BTreeMap<&str, usize>,
) -> Result<Vec<usize>, WeightsError> {
    let find = |path: String| {
        let found = paths.get(path.as_str()).copied();
        found.ok_or_else(|| wrong(row, format!("the model has no parameter {path}")))
    };
    let names = || row.target.0.iter();
    let Some(placeholder) = &row.source.stacked else {
        return names()
            .map(|name| find(pattern::filled(name, numbers)))
            .collect();
    };
    let braced = format!("{{{placeholder}}}");
    let has = |name: &String| name.contains(&braced);
    if !names().all(has) || row.source.names.0.iter().any(has) {
        let reason = format!(
            "{braced} counts a stack: it has to be in all target names, and in no source name"
        );
        return Err(wrong(row, reason));
    }
    let mut target = Vec::new();
    for index in 0.. {
        let mut numbers = numbers.clone();
        numbers.push((placeholder.clone(), index.to_string()));
        let of_index = names().map(|name| pattern::filled(name, &numbers));
        let of_index: Vec<String> = of_index.collect();
        // The stack ends where the model has no more of it.
        if index > 0
            && !of_index
                .iter()
                .any(|path| paths.contains_key(path.as_str()))
        {
            break;
        }
        for path in of_index {
            target.push(find(path)?);
        }
    }
    Ok(target)
}

impl Job {
    fn new(
        row: &Row,
        target: Vec<usize>,
        numbers: &pattern::Numbers,
        parameters: &[Parameter],
    ) -> Result<Self, WeightsError> {
        let source = &row.source;
        let names = source.names.0.iter().map(|name| match name.as_str() {
            ZEROS => None,
            name => Some(pattern::filled(name, numbers)),
        });
        let names: Vec<Option<String>> = names.collect();
        if source.plus_one && names.contains(&None) {
            let reason = "zeros plus one are ones, which no row can stand for".into();
            return Err(wrong(row, reason));
        }
        let files: Vec<bool> = names
            .iter()
            .flatten()
            .map(|name| pattern::placeholder(name).is_some())
            .collect();
        if files.contains(&true) && files.contains(&false) {
            return Err(wrong(
                row,
                "a placeholder that the target does not have has to be in all source names".into(),
            ));
        }
        let shapes: Vec<&[usize]> = target
            .iter()
            .map(|&at| parameters[at].shape.as_slice())
            .collect();
        let stacked = source.stacked.as_ref();
        let stacked = stacked.map(|_| target.len() / row.target.0.len());
        let layout = Layout::new(&shapes, source, stacked, files.contains(&true));
        let layout = layout.map_err(|reason| wrong(row, reason))?;
        let source = names.iter().map(|name| {
            let name = name.as_deref();
            name.map(|name| each_file(name, layout.files))
        });
        Ok(Self {
            source: source.collect(),
            target,
            layout,
            plus_one: row.source.plus_one,
        })
    }
}

/// The names of `files` tensors, whose first placeholder counts them.
fn each_file(name: &str, files: usize) -> Vec<String> {
    let Some(placeholder) = pattern::placeholder(name) else {
        return vec![name.into()];
    };
    let names =
        (0..files).map(|file| pattern::filled(name, &vec![(placeholder.into(), file.to_string())]));
    names.collect()
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
    fn push(
        &mut self,
        shape: Vec<usize>,
        dtype: DType,
        numbers: impl Fn() -> TensorData + 'static,
    ) {
        self.parameters.push(Parameter {
            path: self.path.join("."),
            shape,
            dtype,
            numbers: Box::new(numbers),
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
        let shape = param.lazy_shape().to_vec();
        let (dtype, param) = (dtype(param), param.clone());
        self.push(shape, dtype, move || {
            param.transform_for_save().val().into_data()
        });
    }

    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
        let (shape, dtype) = (
            param.lazy_shape().to_vec(),
            param.lazy_device().settings().int_dtype,
        );
        let param = param.clone();
        self.push(shape, dtype.into(), move || param.val().into_data());
    }

    fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<D, Bool>>) {
        let (shape, dtype) = (
            param.lazy_shape().to_vec(),
            param.lazy_device().settings().bool_dtype,
        );
        let param = param.clone();
        self.push(shape, dtype.into(), move || param.val().into_data());
    }
}

/// The dtype of a parameter; one that is not initialised yet will have its device's default.
pub(super) fn dtype<const D: usize>(param: &Param<Tensor<D>>) -> DType {
    match param.is_initialized() {
        true => param.dtype(),
        false => param.lazy_device().settings().float_dtype.into(),
    }
}
