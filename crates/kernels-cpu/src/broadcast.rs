//! An operand with the shape of the scores, or with sizes of 1 where it repeats.

use crate::{
    Problem,
    extent::{elements, reach, row_major},
};
use thiserror::Error;

/// A `[batch, heads_q, len_q, len_kv]` operand, any of whose sizes may be 1: the operand then repeats along that axis.
///
/// # Shapes
/// Each of the four sizes is that of the [`Problem`] or 1.
///
/// # Cost
/// Borrows the buffer; the operand is never expanded in memory.
///
/// # Source
/// NumPy's broadcasting, without implied leading dimensions. PyTorch: `tensor.expand(...)`.
///
/// # Example
/// ```
/// use burn_attn_kernels_cpu::Broadcast;
///
/// // One number per key, which every batch item, head and query reads.
/// let per_key = Broadcast::new(&[0.5, -1.0, 2.0], [1, 1, 1, 3]).unwrap();
/// assert_eq!(per_key.get(4, 2, 9, 1), -1.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Broadcast<'a, T> {
    data: &'a [T],
    shape: [usize; 4],
    /// 0 where the size is 1.
    strides: [usize; 4],
}

/// Why a [`Broadcast`] cannot be built or used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BroadcastError {
    /// The buffer and the shape disagree.
    #[error("a broadcast operand of shape {shape:?} needs {expected} elements, but has {actual}")]
    Length {
        /// The shape that was given.
        shape: [usize; 4],
        /// The product of the shape.
        expected: usize,
        /// The length of the buffer.
        actual: usize,
    },
    /// The strides lead past the end of the buffer.
    #[error(
        "a broadcast operand of shape {shape:?} with strides {strides:?} needs {expected} elements, but has {actual}"
    )]
    Strides {
        /// The shape that was given.
        shape: [usize; 4],
        /// The strides that were given, in elements.
        strides: [usize; 4],
        /// The number of elements that the shape and the strides span.
        expected: usize,
        /// The length of the buffer.
        actual: usize,
    },
    /// A size is neither 1 nor that of the scores.
    #[error("shape {shape:?} does not broadcast to [batch, heads_q, len_q, len_kv] = {scores:?}")]
    Shape {
        /// The shape that was given.
        shape: [usize; 4],
        /// The shape of the scores.
        scores: [usize; 4],
    },
}

impl<'a, T> Broadcast<'a, T> {
    /// Reads `data` as a row-major tensor of `shape`.
    ///
    /// # Errors
    /// The length of `data` is not the product of `shape`.
    pub fn new(data: &'a [T], shape: [usize; 4]) -> Result<Self, BroadcastError> {
        let expected = elements(shape);
        if data.len() != expected {
            return Err(BroadcastError::Length {
                shape,
                expected,
                actual: data.len(),
            });
        }
        Self::strided(data, shape, contiguous_strides(shape))
    }

    /// Reads `data` as a tensor of `shape` with these strides, in elements; a stride of 0 repeats.
    ///
    /// # Errors
    /// The strides lead past the end of `data`.
    pub fn strided(
        data: &'a [T],
        shape: [usize; 4],
        strides: [usize; 4],
    ) -> Result<Self, BroadcastError> {
        let expected = if shape.contains(&0) {
            0
        } else {
            reach(shape.map(|size| size - 1), strides, 1)
        };
        if data.len() < expected {
            return Err(BroadcastError::Strides {
                shape,
                strides,
                expected,
                actual: data.len(),
            });
        }
        Ok(Self {
            data,
            shape,
            strides: repeated(shape, strides),
        })
    }

    /// Checks that every size is 1 or that of the problem's scores.
    ///
    /// # Errors
    /// A size is neither.
    pub fn validate(&self, problem: &Problem) -> Result<(), BroadcastError> {
        let scores = [
            problem.batch,
            problem.heads_q,
            problem.len_q,
            problem.len_kv,
        ];
        if broadcasts(self.shape, scores) {
            Ok(())
        } else {
            Err(BroadcastError::Shape {
                shape: self.shape,
                scores,
            })
        }
    }

    /// The buffer behind the operand.
    #[must_use]
    pub fn data(&self) -> &'a [T] {
        self.data
    }

    /// The sizes of the buffer, in the order batch, heads, queries, keys.
    #[must_use]
    pub fn shape(&self) -> [usize; 4] {
        self.shape
    }

    /// How far apart neighbours are in the buffer along each axis, in elements; 0 where the operand repeats.
    #[must_use]
    pub fn strides(&self) -> [usize; 4] {
        self.strides
    }

    /// Flat index into [`data`](Self::data) of the element that serves this score.
    ///
    /// A backward pass adds up its gradient at this index, which sums over the broadcast dimensions.
    #[must_use]
    pub fn index(&self, batch_item: usize, head: usize, query: usize, key: usize) -> usize {
        let [batch, heads, queries, keys] = self.strides;
        batch_item * batch + head * heads + query * queries + key * keys
    }
}

/// Whether every size is 1 or that of the whole.
pub(crate) fn broadcasts(shape: [usize; 4], whole: [usize; 4]) -> bool {
    let mut sizes = shape.into_iter().zip(whole);
    sizes.all(|(size, whole)| size == 1 || size == whole)
}

/// The strides of a row-major tensor, 0 where the size is 1.
pub(crate) fn contiguous_strides(shape: [usize; 4]) -> [usize; 4] {
    let [_, heads, queries, keys] = shape;
    let [of_batch, of_heads, of_queries] = row_major(heads, queries, keys);
    repeated(shape, [of_batch, of_heads, of_queries, 1])
}

/// These strides, 0 where the size is 1.
fn repeated(shape: [usize; 4], strides: [usize; 4]) -> [usize; 4] {
    core::array::from_fn(|axis| if shape[axis] == 1 { 0 } else { strides[axis] })
}

impl<T: Copy> Broadcast<'_, T> {
    /// The element that serves this score.
    ///
    /// # Panics
    /// The indices lead outside the buffer.
    #[must_use]
    pub fn get(&self, batch_item: usize, head: usize, query: usize, key: usize) -> T {
        self.data[self.index(batch_item, head, query, key)]
    }
}

#[cfg(test)]
mod tests;
