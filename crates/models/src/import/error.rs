//! What can be wrong with weights from another library.

use std::path::PathBuf;

use burn::tensor::DType;
use thiserror::Error;

/// Why weights cannot be loaded, in one sentence with the offending names, shapes and values.
///
/// The module that was to receive them is unchanged.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum ImportError {
    /// The file is missing, damaged, or of another format.
    #[error("{path} cannot be read as weights of {of}: {reason}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Whose weights it should hold.
        of: &'static str,
        /// The reason that the reader of the format gives.
        reason: String,
    },
    /// A record cannot be read.
    #[error("the record cannot be read: {reason}")]
    Record {
        /// The reason that Burn gives.
        reason: String,
    },
    /// No tensor is where the module should be.
    #[error("no tensor is below {prefix:?}, only below {}", list(found))]
    Prefix {
        /// Where the module should be.
        prefix: String,
        /// The prefixes that there are at this depth.
        found: Vec<String>,
    },
    /// The module has a parameter for which there is no tensor.
    #[error("tensor {name} of shape {shape:?}, which the module needs, is missing")]
    Missing {
        /// The tensor's name.
        name: String,
        /// The shape it should have, in the layout of the source.
        shape: Vec<usize>,
    },
    /// A tensor does not fit the module.
    #[error("tensor {name} has shape {found:?}, but the module needs {expected:?}")]
    Shape {
        /// The tensor's name.
        name: String,
        /// Its shape.
        found: Vec<usize>,
        /// The shape it should have, in the layout of the source.
        expected: Vec<usize>,
    },
    /// A tensor does not hold floating-point numbers, or the parameter does not.
    #[error("tensor {name} holds {found}, which cannot become a parameter of {expected:?}")]
    DType {
        /// The tensor's name.
        name: String,
        /// What it holds, as the file calls it.
        found: String,
        /// What the parameter holds.
        expected: DType,
    },
    /// The numbers of a tensor cannot be read.
    #[error("the numbers of tensor {name} cannot be read: {reason}")]
    Numbers {
        /// The tensor's name.
        name: String,
        /// The reason that the reader of the format gives.
        reason: String,
    },
    /// There are tensors that no parameter of the module takes.
    #[error("the module has no parameter for {}", list(names))]
    Unexpected {
        /// The tensors' names.
        names: Vec<String>,
    },
    /// The source or the module can do what the other cannot.
    #[error("{name}: {reason}")]
    Unsupported {
        /// The tensor or part that shows it.
        name: String,
        /// What it is and what to do instead.
        reason: String,
    },
}

/// The first few names, and how many there are besides.
fn list(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = names[..names.len().min(SHOWN)].join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 if names.is_empty() => "nothing".into(),
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
