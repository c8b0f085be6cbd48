//! Why there is no map.

use std::error::Error;
use std::fmt;

/// Why tokens and weights do not make an [`AttentionMap`](crate::AttentionMap), or pixels and weights no [`ImageMap`](crate::ImageMap).
#[derive(Clone, Debug, PartialEq)]
pub enum MapError {
    /// The list of queries is empty.
    NoQueries,
    /// The list of keys is empty.
    NoKeys,
    /// The number of weights is not heads × queries × keys for any positive number of heads.
    WeightCount {
        /// The number of weights given.
        weights: usize,
        /// The number of queries given.
        queries: usize,
        /// The number of keys given.
        keys: usize,
    },
    /// A weight is NaN or infinite.
    NotFinite(MapWeight),
    /// A weight is below 0 or above 1.
    OutOfRange(MapWeight),
    /// The number of flags that say what is hidden is not queries × keys.
    HiddenCount {
        /// The number of flags given.
        hidden: usize,
        /// The number of queries.
        queries: usize,
        /// The number of keys.
        keys: usize,
    },
    /// A key that is said to be hidden has a weight other than 0.
    HiddenWeight(MapWeight),
    /// The number of bytes is not three for each pixel of an image.
    PixelCount {
        /// The number of bytes given.
        bytes: usize,
        /// The height of the image.
        height: usize,
        /// The width of the image.
        width: usize,
    },
    /// The number of weights is not rows × columns of patches.
    PatchCount {
        /// The number of weights given.
        weights: usize,
        /// The rows of patches.
        rows: usize,
        /// The columns of patches.
        columns: usize,
    },
    /// The number of classes is not one for each pixel of an image.
    ClassCount {
        /// The number of classes given.
        classes: usize,
        /// The height of the image.
        height: usize,
        /// The width of the image.
        width: usize,
    },
    /// The weight of a patch is negative, infinite or NaN.
    PatchWeight {
        /// The patch, counted row by row.
        patch: usize,
        /// Its weight.
        weight: f32,
    },
    /// The left, top, right and bottom of a box are not all finite, or right is less than left, or bottom less than top.
    BoxCorners([f32; 4]),
}

/// A weight and its place, for a [`MapError`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MapWeight {
    /// The head of the weight.
    pub head: usize,
    /// The query of the weight.
    pub query: usize,
    /// The key of the weight.
    pub key: usize,
    /// The weight.
    pub weight: f32,
}

/// The product of sizes that need not fit in memory.
pub(crate) fn product<const N: usize>(sizes: [usize; N]) -> u128 {
    let widened = sizes.iter().map(|&size| size as u128);
    widened.fold(1, u128::saturating_mul)
}

impl fmt::Display for MapError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MapError::NoQueries => write!(out, "an attention map needs at least one query"),
            MapError::NoKeys => write!(out, "an attention map needs at least one key"),
            MapError::WeightCount {
                weights,
                queries,
                keys,
            } => write!(
                out,
                "{weights} weights do not fill heads of {queries} queries × {keys} keys = {} weights each",
                queries * keys
            ),
            MapError::NotFinite(weight) => write!(out, "{weight}, not a finite number"),
            MapError::OutOfRange(weight) => write!(
                out,
                "{weight}, not between 0 and 1: pass weights after the softmax"
            ),
            MapError::HiddenCount {
                hidden,
                queries,
                keys,
            } => write!(
                out,
                "{hidden} flags do not say what is hidden of {queries} queries × {keys} keys = {} weights",
                queries * keys
            ),
            MapError::PixelCount { height, width, .. } if product([*height, *width]) == 0 => {
                write!(out, "an image {height} high and {width} wide has no pixels")
            }
            MapError::PatchCount { rows, columns, .. } if product([*rows, *columns]) == 0 => {
                write!(out, "{rows} rows × {columns} columns are no patches")
            }
            MapError::PixelCount {
                bytes,
                height,
                width,
            } => write!(
                out,
                "{bytes} bytes are not the {} of an image {height} high and {width} wide, 3 for each pixel",
                product([*height, *width, 3])
            ),
            MapError::PatchCount {
                weights,
                rows,
                columns,
            } => write!(
                out,
                "{weights} weights are not one for each of {rows} rows × {columns} columns = {} patches",
                product([*rows, *columns])
            ),
            MapError::ClassCount {
                classes,
                height,
                width,
            } => write!(
                out,
                "{classes} classes are not one for each of the {} pixels of an image {height} high and {width} wide",
                product([*height, *width])
            ),
            MapError::PatchWeight { patch, weight } => write!(
                out,
                "the weight of patch {patch} is {weight}; it must be finite and at least 0"
            ),
            MapError::BoxCorners([left, top, right, bottom]) => write!(
                out,
                "the box from {left}, {top} (left, top) to {right}, {bottom} (right, bottom) must be finite, with right at least left and bottom at least top"
            ),
            MapError::HiddenWeight(weight) => write!(
                out,
                "{weight}, and the key is said to be hidden: pass true where a mask hides a key"
            ),
        }
    }
}

impl fmt::Display for MapWeight {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "the weight of head {}, query {}, key {} is {}",
            self.head, self.query, self.key, self.weight
        )
    }
}

impl Error for MapError {}
