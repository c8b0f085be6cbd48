//! What can be wrong with weights, reported all at once.

use std::{
    fmt::{self, Display, Formatter},
    path::{Path, PathBuf},
};

use burn::tensor::DType;
use thiserror::Error;

/// Why weights cannot be read or written, in one sentence with the offending names, shapes and values.
///
/// The model that was to receive them is unchanged.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum WeightsError {
    /// A file is missing, damaged, malicious, or of another format.
    #[error("{path} cannot be read as weights: {reason}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A record of Burn's cannot be read.
    #[error("the record cannot be read: {reason}")]
    Record {
        /// The reason that Burn gives.
        reason: String,
    },
    /// No tensor is where the module should be.
    #[error("no tensor is below {prefix:?}, only below {}", first(found))]
    Prefix {
        /// Where the module should be.
        prefix: String,
        /// The prefixes at this depth.
        found: Vec<String>,
    },
    /// The other library or the module has something that the other of the two lacks.
    #[error("{name}: {reason}", name = name.escape_debug())]
    Unsupported {
        /// The tensor or module that shows it.
        name: String,
        /// What it has, and what to do instead.
        reason: String,
    },
    /// The tensors, the table and the model do not match.
    #[error("the weights do not fit the model: {0}")]
    Mismatch(Box<Mismatch>),
    /// A file has two tensors under names that mean the same one.
    #[error(
        "the weights have {} twice: as {} and as {}",
        name.escape_debug(),
        tensors[0].escape_debug(),
        tensors[1].escape_debug()
    )]
    Twice {
        /// The name that both get by renaming.
        name: String,
        /// Their names in the file.
        tensors: [String; 2],
    },
    /// A row of the table contradicts itself, another row, or the model.
    #[error("the table of weights is wrong: {reason}")]
    Table {
        /// The row, and what is wrong with it.
        reason: String,
    },
    /// The numbers of a tensor cannot be read.
    #[error("the numbers of tensor {name} cannot be read: {reason}", name = name.escape_debug())]
    Numbers {
        /// The tensor.
        name: String,
        /// The reason that the reader gives.
        reason: String,
    },
    /// A parameter holds numbers that the other library cannot store, or cannot read.
    #[error("parameter {parameter} cannot be written: {reason}")]
    Parameter {
        /// The parameter.
        parameter: String,
        /// Why not.
        reason: String,
    },
    /// The file cannot be written.
    #[error("{path} cannot be written: {reason}", path = path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The reason that the operating system gives.
        reason: String,
    },
}

impl WeightsError {
    pub(crate) fn file(path: &Path, reason: impl ToString) -> Self {
        Self::File {
            path: path.into(),
            reason: reason.to_string(),
        }
    }

    pub(super) fn numbers(name: &str, reason: impl ToString) -> Self {
        Self::Numbers {
            name: name.into(),
            reason: reason.to_string(),
        }
    }
}

impl From<Mismatch> for WeightsError {
    fn from(mismatch: Mismatch) -> Self {
        Self::Mismatch(Box::new(mismatch))
    }
}

/// Why a file or a tensor cannot be read.
pub(crate) type Reason = Box<dyn std::error::Error>;

/// Fails with a sentence, as of `format!`, unless a condition holds.
macro_rules! ensure {
    ($holds:expr, $($sentence:tt)+) => {
        if !$holds {
            return Err(format!($($sentence)+).into());
        }
    };
}
pub(crate) use ensure;

/// Everything in which tensors, table and model do not match. Its sentence has the first five names of each kind.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Mismatch {
    /// Tensors that the model needs and that are missing.
    pub missing: Vec<Missing>,
    /// Tensors that no parameter takes.
    pub unexpected: Vec<String>,
    /// Tensors of the wrong shape.
    pub shapes: Vec<WrongShape>,
    /// Tensors whose numbers cannot become those of their parameter.
    pub dtypes: Vec<WrongDType>,
    /// Pairs of tensors that are equal according to the table, but differ.
    pub untied: Vec<(String, String)>,
    /// Parameters of the model without a row in the table.
    pub unlisted: Vec<String>,
}

/// A tensor that the model needs.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{name} {shape:?}")]
pub struct Missing {
    /// The tensor's name.
    pub name: String,
    /// The shape it should have.
    pub shape: Vec<usize>,
}

/// A tensor that does not fit its parameter.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{name} is {found:?} instead of {needed:?}")]
pub struct WrongShape {
    /// The tensor's name.
    pub name: String,
    /// Its shape.
    pub found: Vec<usize>,
    /// The shape that the model needs.
    pub needed: Vec<usize>,
}

/// A tensor whose numbers cannot become those of its parameter.
#[derive(Clone, Debug, Error, PartialEq)]
#[error("{name} holds {found}, but {parameter} {needed:?}")]
pub struct WrongDType {
    /// The tensor's name.
    pub name: String,
    /// What it holds, as the file calls it.
    pub found: String,
    /// The parameter.
    pub parameter: String,
    /// What the parameter holds.
    pub needed: DType,
}

impl Mismatch {
    /// Fails if there is anything in it.
    pub(crate) fn into_result(self) -> Result<(), WeightsError> {
        match self == Self::default() {
            true => Ok(()),
            false => Err(self.into()),
        }
    }
}

impl Display for Mismatch {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        fn texts(wrong: &[impl Display]) -> Vec<String> {
            wrong.iter().map(ToString::to_string).collect()
        }
        let untied = self.untied.iter().map(|(a, b)| format!("{a} and {b}"));
        let kinds = [
            ("missing", texts(&self.missing)),
            ("of another shape", texts(&self.shapes)),
            ("of another dtype", texts(&self.dtypes)),
            ("unexpected", self.unexpected.clone()),
            ("tied but not equal", untied.collect()),
            (
                "parameters without a row in the table",
                self.unlisted.clone(),
            ),
        ];
        let kinds = kinds.iter().filter(|(_, names)| !names.is_empty());
        let kinds = kinds.map(|(what, names)| format!("{what}: {}", first(names)));
        f.write_str(&kinds.collect::<Vec<_>>().join("; "))
    }
}

/// The names, or the first five, how many there are in all, and the modules that all of them are in.
fn first(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let Some(name) = names.first().filter(|_| names.len() > SHOWN) else {
        return match names {
            [] => "nothing".into(),
            _ => list(names),
        };
    };
    let shared = names.iter().fold(name.as_str(), |shared, name| {
        let same = shared.chars().zip(name.chars());
        let same = same.take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8());
        &shared[..same.sum()]
    });
    let shared = match shared.rsplit_once('.') {
        Some((modules, _)) => format!(", all in {}", modules.escape_debug()),
        None => String::new(),
    };
    let (shown, count) = (list(&names[..SHOWN]), names.len());
    format!("{shown}, … ({count} in all{shared})")
}

/// The names, or the first ones and how many more there are: a file can have very many. Line breaks and the like, which only a hostile
/// file has in its names, are escaped.
pub(crate) fn list(names: &[String]) -> String {
    const SHOWN: usize = 100;
    let shown: Vec<String> = names
        .iter()
        .take(SHOWN)
        .map(|name| name.escape_debug().to_string())
        .collect();
    let shown = shown.join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
