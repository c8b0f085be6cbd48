//! Why an image cannot be recognised.

use std::path::PathBuf;

use thiserror::Error;

use crate::pretrained::PretrainedError;

/// Why an image cannot be recognised, in one sentence with the offending values.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum VisionError {
    /// The files do not hold such a model.
    #[error(transparent)]
    Pretrained(#[from] PretrainedError),
    /// The model has no head for classes.
    #[error(
        "{path}: the weights have no {tensor}, so the model lacks the head that is needed",
        path = path.display()
    )]
    NoHead {
        /// The source of the model.
        path: PathBuf,
        /// A tensor of the head.
        tensor: &'static str,
    },
    /// The model has a single class, which would always be the answer.
    #[error("{path}: the model has one class only, of which nothing can be said", path = path.display())]
    OneClass {
        /// The source of the model.
        path: PathBuf,
    },
    /// The classes of the model do not exclude each other, or are numbers.
    #[error(
        "{path}: problem_type is {found:?}, but an image classifier has single_label_classification",
        path = path.display()
    )]
    ProblemType {
        /// The source of the model.
        path: PathBuf,
        /// The kind of problem.
        found: String,
    },
    /// The image has no pixels, or there would be none or too many at a step of its processing.
    #[error(
        "an image of {width} × {height} pixels cannot become one of {to_width} × {to_height}: {reason}"
    )]
    Size {
        /// Width of the image (pixels).
        width: u32,
        /// Its height (pixels).
        height: u32,
        /// Width after resizing (pixels).
        to_width: u64,
        /// Height after resizing (pixels).
        to_height: u64,
        /// Where there are no pixels, or the step with too many and the most that are allowed.
        reason: String,
    },
}
