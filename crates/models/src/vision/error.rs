//! Why an image cannot be recognised.

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
    #[error("the weights have no head of the kind that is needed")]
    NoHead,
    /// The model has a single class, which would always be the answer.
    #[error("the model has one class only, of which nothing can be said")]
    OneClass,
    /// The classes of the model do not exclude each other, or are numbers.
    #[error(
        "the model's problem_type is {0:?}, but an image classifier has single_label_classification"
    )]
    ProblemType(String),
    /// The image has no pixels, or so many that it cannot be resized.
    #[error("an image of {width} × {height} pixels cannot become one of {to_width} × {to_height}")]
    Size {
        /// Width of the image (pixels).
        width: u32,
        /// Its height (pixels).
        height: u32,
        /// Width after resizing (pixels).
        to_width: u64,
        /// Height after resizing (pixels).
        to_height: u64,
    },
}
