//! Reads a table from ours to theirs: parameters of a model become tensors of a file.

#[cfg(unix)]
use std::fs::{self, Permissions};
use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    io,
    path::Path,
};

use burn::{module::Module, tensor::DType};
use safetensors::{Dtype, View};

use super::{
    Mismatch, Table, WeightsError, numbers,
    plan::{Job, Piece, Plan},
};

/// Writes the parameters of `model` into one safetensors file, as the tensors that `table` assigns them to.
///
/// The tensors have the dtypes of the parameters. What came from a file of the same dtype is written with the same bits (except for
/// [`plus_one`](super::Theirs::plus_one)). A file at `path` is replaced in one step, when everything is written.
///
/// On Unix, the umask decides who can read the file.
///
/// # Errors
///
/// When a parameter has no row, does not hold floating-point numbers, is not 0 where the other library has no tensor, or differs from
/// another one that is the same tensor; when the file cannot be written.
///
/// # Cost
///
/// Holds one tensor of theirs and one of ours in memory at a time. Initialises parameters that are not initialised yet.
pub fn save<M: Module>(
    table: &Table,
    model: &M,
    path: impl AsRef<Path>,
) -> Result<(), WeightsError> {
    let plan = Plan::new(table, model)?;
    let unlisted = plan.unlisted();
    if !unlisted.is_empty() {
        let mismatch = Mismatch {
            unlisted,
            ..Mismatch::default()
        };
        return Err(WeightsError::Mismatch(Box::new(mismatch)));
    }
    let mut outputs = BTreeMap::<&str, Output>::new();
    for job in &plan.jobs {
        for (theirs, tensor) in job.theirs.iter().enumerate() {
            let dtype = dtype(&plan, job, theirs)?;
            let output = |file| Output {
                plan: &plan,
                job,
                theirs,
                file,
                dtype,
                shape: job.layout.shape(theirs),
            };
            let Piece::Named(names) = tensor else {
                output(0).check_zeros()?;
                continue;
            };
            for (file, name) in names.iter().enumerate() {
                let output = output(file);
                match outputs.get(name.as_str()) {
                    Some(other) => other.check_same(&output, name)?,
                    None => {
                        outputs.insert(name, output);
                    }
                }
            }
        }
    }
    let path = path.as_ref();
    // transformers refuses a file without it.
    let metadata = HashMap::from([("format".to_string(), "pt".to_string())]);
    let written = safetensors::serialize_to_file(outputs, Some(metadata), path);
    let written = written.map_err(|error| error.to_string());
    let permitted = written.and_then(|()| permit(path).map_err(|error| error.to_string()));
    permitted.map_err(|reason| WeightsError::Write {
        path: path.into(),
        reason,
    })
}

/// Lets those read a file who could read it if it had been written in place: safetensors makes a temporary file, which is its owner's alone.
#[cfg(unix)]
fn permit(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;

    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    // The umask can be seen only in a new file.
    let new = tempfile::Builder::new()
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder.unwrap_or(Path::new(".")))?;
    fs::set_permissions(path, new.as_file().metadata()?.permissions())
}

#[cfg(not(unix))]
fn permit(_: &Path) -> io::Result<()> {
    Ok(())
}

/// The dtype of a tensor to write: that of the first parameter that is a part of it.
fn dtype(plan: &Plan, job: &Job, theirs: usize) -> Result<DType, WeightsError> {
    let ours = job.ours.iter().enumerate();
    let mut parts = ours.filter(|(ours, _)| job.layout.shares(*ours, theirs));
    let at = parts.next().map_or(job.ours[0], |(_, &at)| at);
    let not_float = job
        .ours
        .iter()
        .map(|&at| &plan.parameters[at])
        .find(|ours| !ours.is_float());
    match not_float {
        None => Ok(plan.parameters[at].dtype),
        Some(ours) => Err(WeightsError::Parameter {
            parameter: ours.path.clone(),
            reason: format!("it holds {:?}", ours.dtype),
        }),
    }
}

/// A tensor to be written. Its numbers are read from the device when its turn comes.
struct Output<'a> {
    plan: &'a Plan,
    job: &'a Job,
    theirs: usize,
    file: usize,
    dtype: DType,
    shape: Vec<usize>,
}

impl Output<'_> {
    fn numbers(&self) -> Vec<u8> {
        let numbers = numbers::export(self.plan, self.job, self.theirs, self.file, self.dtype);
        numbers.expect("one floating-point type converts to another")
    }

    fn parameter(&self) -> &str {
        &self.plan.parameters[self.job.ours[0]].path
    }

    fn check_zeros(&self) -> Result<(), WeightsError> {
        if numbers::are_zeros(self.numbers(), self.dtype) {
            return Ok(());
        }
        Err(WeightsError::Parameter {
            parameter: self.parameter().into(),
            reason: "it is not 0 where the other library has no tensor".into(),
        })
    }

    fn check_same(&self, other: &Output, name: &str) -> Result<(), WeightsError> {
        if self.shape == other.shape
            && self.dtype == other.dtype
            && self.numbers() == other.numbers()
        {
            return Ok(());
        }
        Err(WeightsError::Parameter {
            parameter: other.parameter().into(),
            reason: format!("it differs from {}, and both are {name}", self.parameter()),
        })
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
