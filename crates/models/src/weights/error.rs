//! What can be wrong with weights, all of it at once.

use std::{
    fmt::{self, Display, Formatter},
    path::PathBuf,
};

use burn::tensor::DType;
use thiserror::Error;

/// Why weights cannot be read or written, as one sentence with the offending names, shapes and values.
///
/// The model that was to receive them is as it was before.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum WeightsError {
    /// A file is not there, something else, damaged, or made to do harm.
    #[error("{path} cannot be read as weights: {reason}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The tensors, the table and the model do not fit each other.
    #[error("the weights do not fit the model: {0}")]
    Mismatch(Box<Mismatch>),
    /// A row of the table contradicts itself, another one or the model.
    #[error("the table of weights is wrong: {reason}")]
    Table {
        /// What is wrong with which row.
        reason: String,
    },
    /// The numbers of a tensor cannot be read.
    #[error("the numbers of tensor {name} cannot be read: {reason}")]
    Numbers {
        /// The tensor.
        name: String,
        /// What the reader says.
        reason: String,
    },
    /// A parameter has numbers that the other library has no place for, or none that it could read.
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
        /// What the operating system says.
        reason: String,
    },
}

/// Everything in which tensors, table and model do not fit each other.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Mismatch {
    /// Tensors that the model needs and there are not.
    pub missing: Vec<Missing>,
    /// Tensors that no parameter takes.
    pub unexpected: Vec<String>,
    /// Tensors of another shape.
    pub shapes: Vec<WrongShape>,
    /// Tensors that hold no floating-point numbers, or whose parameter holds none that they can become.
    pub dtypes: Vec<WrongDType>,
    /// Tensors that the table says are the same, and are not.
    pub untied: Vec<(String, String)>,
    /// Parameters of the model that are in no row.
    pub unlisted: Vec<String>,
}

/// A tensor that the model needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The tensor's name.
    pub name: String,
    /// The shape it should have.
    pub shape: Vec<usize>,
}

/// A tensor that does not fit its parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongShape {
    /// The tensor's name.
    pub name: String,
    /// Its shape.
    pub found: Vec<usize>,
    /// The shape that the model needs.
    pub needed: Vec<usize>,
}

/// A tensor whose numbers cannot become those of its parameter.
#[derive(Clone, Debug, PartialEq)]
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

impl Display for Mismatch {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let missing = self.missing.iter();
        let missing = missing.map(|Missing { name, shape }| format!("{name} {shape:?}"));
        let shapes = self.shapes.iter().map(
            |WrongShape {
                 name,
                 found,
                 needed,
             }| format!("{name} is {found:?} instead of {needed:?}"),
        );
        let dtypes = self.dtypes.iter().map(
            |WrongDType {
                 name,
                 found,
                 parameter,
                 needed,
             }| format!("{name} holds {found}, {parameter} {needed:?}"),
        );
        let untied = self.untied.iter().map(|(a, b)| format!("{a} and {b}"));
        let kinds = [
            ("missing are", missing.collect()),
            ("of another shape are", shapes.collect()),
            ("of another kind of number are", dtypes.collect()),
            ("unexpected are", self.unexpected.clone()),
            ("not the same are", untied.collect()),
            (
                "the table has no row for the parameters",
                self.unlisted.clone(),
            ),
        ];
        let kinds = kinds.into_iter().filter(|(_, names)| !names.is_empty());
        let kinds = kinds.map(|(what, names): (_, Vec<String>)| format!("{what} {}", list(&names)));
        f.write_str(&kinds.collect::<Vec<_>>().join("; "))
    }
}

/// The names, or the first ones and how many there are besides: a file can have very many.
fn list(names: &[String]) -> String {
    const SHOWN: usize = 100;
    let shown = names[..names.len().min(SHOWN)].join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
