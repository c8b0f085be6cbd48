//! Reads a table from target to source: parameters of a model become tensors of a file.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    path::Path,
};
#[cfg(unix)]
use std::{
    fs::{self, Permissions},
    io,
};

use burn::{module::Module, tensor::DType};
use safetensors::{Dtype, View};

use super::{
    Mismatch, Table, WeightsError, numbers,
    plan::{Job, Plan},
    source::is_float,
};

/// Writes the parameters of `model` into one safetensors file, as the tensors that `table` assigns them to.
///
/// The tensors have the dtypes of the parameters. What came from a file of the same dtype is written with the same bits (except for
/// [`plus_one`](super::Source::plus_one)). A file at `path` is replaced in one step, when everything is written.
///
/// On Unix, a file that is replaced leaves its permissions to the new one; where there was none, the umask decides who can read it.
///
/// # Errors
///
/// When a parameter has no row, does not hold floating-point numbers, is not 0 where the other library has no tensor, or differs from
/// another one that is the same tensor; when the file cannot be written.
///
/// # Cost
///
/// Holds one source tensor and one parameter in memory at a time. Initialises parameters that are not initialised yet.
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
        return Err(mismatch.into());
    }
    let mut outputs = BTreeMap::<&str, Output>::new();
    for job in &plan.jobs {
        for (source, tensor) in job.source.iter().enumerate() {
            let dtype = dtype(&plan, job, source)?;
            let output = |file| Output {
                plan: &plan,
                job,
                source,
                file,
                dtype,
                shape: job.layout.shape(source),
            };
            let Some(names) = tensor else {
                output(0).check_zeros()?;
                continue;
            };
            for (file, name) in names.iter().enumerate() {
                let output = output(file);
                match outputs.get(name.as_str()) {
                    Some(other) => other.check_same(&output, name)?,
                    None => drop(outputs.insert(name, output)),
                }
            }
        }
    }
    let path = path.as_ref();
    #[cfg(unix)]
    let replaced = fs::metadata(path).map(|file| file.permissions()).ok();
    // transformers refuses a file without it.
    let metadata = HashMap::from([("format".to_string(), "pt".to_string())]);
    let written = safetensors::serialize_to_file(outputs, Some(metadata), path);
    let written = written.map_err(|error| error.to_string());
    #[cfg(unix)]
    let written = written.and_then(|()| {
        let permitted = permit(path, replaced);
        permitted.map_err(|error| error.to_string())
    });
    written.map_err(|reason| WeightsError::Write {
        path: path.into(),
        reason,
    })
}

/// Lets those read a file who could read it if it had been written in place: safetensors makes a temporary file, which is its owner's alone.
#[cfg(unix)]
fn permit(path: &Path, replaced: Option<Permissions>) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;

    if let Some(permissions) = replaced {
        return fs::set_permissions(path, permissions);
    }
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    // The umask can be seen only in a new file.
    let new = tempfile::Builder::new()
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder.unwrap_or(Path::new(".")))?;
    fs::set_permissions(path, new.as_file().metadata()?.permissions())
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
        let numbers = numbers::export(self.plan, self.job, self.source, self.file, self.dtype);
        numbers.expect("one floating-point type converts to another")
    }

    fn unfit(&self, reason: String) -> WeightsError {
        WeightsError::Parameter {
            parameter: self.parameter().into(),
            reason,
        }
    }

    fn parameter(&self) -> &str {
        &self.plan.parameters[self.job.target[0]].path
    }

    fn check_zeros(&self) -> Result<(), WeightsError> {
        match numbers::are_zeros(self.numbers(), self.dtype) {
            true => Ok(()),
            false => Err(self.unfit("it is not 0 where the other library has no tensor".into())),
        }
    }

    fn check_same(&self, other: &Output, name: &str) -> Result<(), WeightsError> {
        let are_same = self.shape == other.shape
            && self.dtype == other.dtype
            && self.numbers() == other.numbers();
        let parameter = self.parameter();
        match are_same {
            true => Ok(()),
            false => Err(other.unfit(format!("it differs from {parameter}, and both are {name}"))),
        }
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
