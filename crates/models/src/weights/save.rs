//! Reads a table from target to source: parameters of a model become tensors of a file.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    fs,
    path::Path,
};

use burn::{
    module::Module,
    tensor::{DType, TensorData},
};
use burn_store::burn_pack::AtomicFile;
use safetensors::{Dtype, View};

use super::{
    Mismatch, Reason, Table, WeightsError,
    numbers::{converted, copy},
    plan::{Job, Plan},
    source::is_float,
};

/// Writes the parameters of `model` into one safetensors file, as the tensors that `table` assigns them to.
///
/// The tensors have the dtypes of the parameters. What came from a file of the same dtype is written with the same bits (except for
/// [`plus_one`](super::Source::plus_one)). A file at `path` is replaced in one step, when everything is written.
///
/// On Unix, the new file has the permissions of a file that it replaces, or else those of the umask.
///
/// # Errors
///
/// When a parameter has no row, does not hold floating-point numbers, is not 0 where the other library has no tensor, or differs from
/// another one that is the same tensor; when the file cannot be written.
///
/// # Cost
///
/// Holds one source tensor and one parameter in memory at a time, or two source tensors where two parameters are the same tensor. Initialises
/// parameters that are not initialised yet.
pub fn save<M: Module>(
    table: &Table,
    model: &M,
    path: impl AsRef<Path>,
) -> Result<(), WeightsError> {
    let plan = Plan::new(table, model)?;
    let mismatch = Mismatch {
        unlisted: plan.unlisted(),
        ..Mismatch::default()
    };
    mismatch.into_result()?;
    let mut outputs = BTreeMap::<&str, Output>::new();
    for job in &plan.jobs {
        let parameter = &plan.parameters[job.target[0]].path;
        let unfit = |reason: String| WeightsError::Parameter {
            parameter: parameter.clone(),
            reason,
        };
        for (source, names) in job.source.iter().enumerate() {
            let dtype = dtype(&plan, job, source)?;
            let output = |file| Output {
                plan: &plan,
                job,
                source,
                file,
                dtype,
                shape: job.layout.shape(source),
            };
            if names.is_none() && !output(0).is_zero() {
                let reason = "it is not 0 where the other library has no tensor";
                return Err(unfit(reason.into()));
            }
            for (file, name) in names.iter().flatten().enumerate() {
                let output = output(file);
                match outputs.get(name.as_str()) {
                    Some(other) if !other.is_same(&output) => {
                        let other = &plan.parameters[other.job.target[0]].path;
                        let reason = format!("it differs from {other}, and both are {name}");
                        return Err(unfit(reason));
                    }
                    Some(_) => {}
                    None => drop(outputs.insert(name, output)),
                }
            }
        }
    }
    let path = path.as_ref();
    // transformers refuses a file without it.
    let metadata = HashMap::from([("format".to_string(), "pt".to_string())]);
    let write = || -> Result<(), Reason> {
        let (written, new) = AtomicFile::create(path)?;
        // The safetensors crate makes a new file that only its owner can read.
        let permissions = new.metadata()?.permissions();
        drop(new);
        safetensors::serialize_to_file(outputs, Some(metadata), written.path())?;
        fs::set_permissions(written.path(), permissions)?;
        Ok(written.commit()?)
    };
    write().map_err(|reason| WeightsError::Write {
        path: path.into(),
        reason: reason.to_string(),
    })
}

/// The dtype of a tensor to write: that of the first parameter that is a part of it.
fn dtype(plan: &Plan, job: &Job, source: usize) -> Result<DType, WeightsError> {
    let parameters = || job.target.iter().map(|&at| &plan.parameters[at]);
    if let Some(target) = parameters().find(|target| !is_float(target.dtype)) {
        return Err(WeightsError::Parameter {
            parameter: target.path.clone(),
            reason: format!("it holds {:?}", target.dtype),
        });
    }
    let mut shares = (0..job.target.len()).filter(|&target| job.layout.shares(target, source));
    let at = job.target[shares.next().unwrap_or(0)];
    Ok(plan.parameters[at].dtype)
}

/// A tensor to be written. Its numbers are read from the device when its turn comes.
struct Output<'a> {
    plan: &'a Plan,
    job: &'a Job,
    source: usize,
    file: usize,
    dtype: DType,
    shape: Vec<usize>,
}

impl Output<'_> {
    fn numbers(&self) -> Vec<u8> {
        let (job, source, width) = (self.job, self.source, self.dtype.size());
        let layout = &job.layout;
        let mut numbers = vec![0; self.data_len()];
        let summand = if job.plus_one { -1.0 } else { 0.0 };
        for (target, &at) in job.target.iter().enumerate() {
            if !layout.shares(target, source) {
                continue;
            }
            let data = (self.plan.parameters[at].numbers)();
            let data = converted(data, self.dtype, summand);
            let data = data.expect("one floating-point type converts to another");
            for block in layout.blocks([target, source], self.file) {
                let range = block.range.start * width..block.range.end * width;
                let (data, numbers) = (data.as_bytes(), &mut numbers[range]);
                layout.each([target, source], &block, |at, source_at, step, len| {
                    let (from, to) = (&data[at * width..], &mut numbers[source_at * width..]);
                    copy(from, 1, to, step, [len, width]);
                });
            }
        }
        numbers
    }

    fn is_same(&self, other: &Self) -> bool {
        (self.dtype, &self.shape) == (other.dtype, &other.shape)
            && self.numbers() == other.numbers()
    }

    fn is_zero(&self) -> bool {
        let count = self.shape.iter().product::<usize>();
        let data = TensorData::from_bytes_vec(self.numbers(), [count], self.dtype);
        data.iter::<f64>().all(|number| number == 0.0)
    }
}

impl View for Output<'_> {
    fn dtype(&self) -> Dtype {
        match self.dtype {
            DType::F64 => Dtype::F64,
            DType::F16 => Dtype::F16,
            DType::BF16 => Dtype::BF16,
            _ => Dtype::F32,
        }
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        self.numbers().into()
    }

    fn data_len(&self) -> usize {
        self.shape.iter().product::<usize>() * self.dtype.size()
    }
}
