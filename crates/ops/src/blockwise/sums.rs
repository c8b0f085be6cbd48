//! Gradients that add up over blocks.

use core::ops::Range;

use burn::{
    backend::{
        Backend, TensorMetadata,
        tensor::{FloatTensor, IntTensor},
    },
    tensor::{IndexingUpdateOp, Shape, Slice},
};

use crate::composed::{cast, float_dtype, part::entries_by_offset, relative::reversed};

/// A tensor that is accumulated in blocks of rows and columns, which stay separate tensors until the end.
pub(super) struct BlockSums<B: Backend> {
    like: FloatTensor<B>,
    /// The blocks along dimensions 2 and 3.
    ranges: [Vec<Range<usize>>; 2],
    /// By rows, then columns.
    blocks: Vec<Vec<Option<FloatTensor<B>>>>,
}

impl<B: Backend> BlockSums<B> {
    /// Sums of the shape and dtype of `like`, whose dimensions 2 and 3 have these blocks, or a single entry.
    pub(super) fn new(
        like: &FloatTensor<B>,
        rows: &[Range<usize>],
        columns: &[Range<usize>],
    ) -> Self {
        let dims = like.shape().dims::<4>();
        let entry = 0..1;
        let ranges = [(dims[2], rows), (dims[3], columns)].map(|(size, ranges)| match size {
            1 => vec![entry.clone()],
            _ => ranges.to_vec(),
        });
        Self {
            like: like.clone(),
            blocks: vec![vec![None; ranges[1].len()]; ranges[0].len()],
            ranges,
        }
    }

    pub(super) fn dims(&self) -> [usize; 4] {
        self.like.shape().dims()
    }

    pub(super) fn add(&mut self, row: usize, column: usize, term: FloatTensor<B>) {
        // A single entry takes the terms of all blocks.
        let [row, column] =
            [(row, 0), (column, 1)].map(|(block, axis)| block.min(self.ranges[axis].len() - 1));
        let block = &mut self.blocks[row][column];
        *block = Some(match block.take() {
            Some(sum) => B::float_add(sum, term),
            None => term,
        });
    }

    /// The blocks side by side; blocks without a term are zeros.
    pub(super) fn join(self) -> FloatTensor<B> {
        let [batch, heads, _, _] = self.dims();
        let (device, dtype) = (self.like.device(), float_dtype(self.like.dtype()));
        let [rows, columns] = &self.ranges;
        let rows = self.blocks.into_iter().zip(rows).map(|(blocks, row)| {
            let blocks = blocks.into_iter().zip(columns).map(|(block, column)| {
                let shape = Shape::new([batch, heads, row.len(), column.len()]);
                match block {
                    Some(block) => cast::<B>(B::float_reshape(block, shape), dtype),
                    None => B::float_zeros(shape, &device, dtype),
                }
            });
            joined::<B>(blocks.collect(), 3)
        });
        joined::<B>(rows.collect(), 2)
    }
}

fn joined<B: Backend>(mut tensors: Vec<FloatTensor<B>>, dim: usize) -> FloatTensor<B> {
    match tensors.len() {
        1 => tensors.remove(0),
        _ => B::float_cat(tensors, dim),
    }
}

/// The sum over every dimension in which `dims` is 1; these dimensions are kept, with size 1.
///
/// One dimension after the other: as in `expand` of the composed body.
pub(super) fn sum_to<B: Backend>(tensor: FloatTensor<B>, dims: [usize; 4]) -> FloatTensor<B> {
    (0..4).fold(tensor, |sum, dim| {
        match dims[dim] == 1 && sum.shape()[dim] > 1 {
            true => B::float_sum_dim(sum, dim),
            false => sum,
        }
    })
}

/// The gradient of an aligned distance bias `[batch or 1, heads_q, len_q + len_kv − 1]`.
pub(super) struct DistanceSums<B: Backend> {
    sum: FloatTensor<B>,
    len_kv: usize,
}

impl<B: Backend> DistanceSums<B> {
    pub(super) fn new(like: &FloatTensor<B>, len_kv: usize) -> Self {
        let dtype = float_dtype(like.dtype());
        Self {
            sum: B::float_zeros(like.shape(), &like.device(), dtype),
            len_kv,
        }
    }

    /// Adds the gradient of a block of scores, `[batch, heads_q, queries, keys]`.
    pub(super) fn add(
        &mut self,
        gradient: FloatTensor<B>,
        queries: &Range<usize>,
        keys: &Range<usize>,
    ) {
        let [batch, ..] = self.sum.shape().dims::<3>();
        let dims = [batch, usize::MAX, usize::MAX, usize::MAX];
        let term = diagonals::<B>(sum_to::<B>(gradient, dims));
        let term = cast::<B>(term, float_dtype(self.sum.dtype()));
        let first = queries.start + self.len_kv - keys.end;
        let entries = first..first + queries.len() + keys.len() - 1;
        let slices = [Slice::full(), Slice::full(), Slice::from(entries)];
        let sum = B::float_add(B::float_slice(self.sum.clone(), &slices), term);
        self.sum = B::float_slice_assign(self.sum.clone(), &slices, sum);
    }

    /// The gradient of the operand that was aligned.
    pub(super) fn into_gradient(
        self,
        like: &FloatTensor<B>,
        query_offsets: Option<&IntTensor<B>>,
        len_q: usize,
    ) -> FloatTensor<B> {
        let Some(offsets) = query_offsets else {
            return B::float_reshape(self.sum, like.shape());
        };
        let [heads_q, entries] = like.shape().dims::<2>();
        let batch = offsets.shape()[0];
        let zeros = Shape::new([batch, heads_q, entries]);
        let zeros = B::float_zeros(zeros, &like.device(), float_dtype(like.dtype()));
        let places = entries_by_offset::<B>(offsets, heads_q, [len_q, self.len_kv]);
        let sums = B::float_scatter(2, zeros, places, self.sum, IndexingUpdateOp::Add);
        B::float_reshape(B::float_sum_dim(sums, 0), like.shape())
    }
}

/// The sums of the diagonals of `[batch, heads_q, len_q, len_kv]`, `[batch, heads_q, len_q + len_kv − 1]`: the gradient of
/// [`relative_shift`](crate::composed::relative::relative_shift), whose steps it reverses.
fn diagonals<B: Backend>(gradient: FloatTensor<B>) -> FloatTensor<B> {
    let [batch, heads_q, len_q, len_kv] = gradient.shape().dims::<4>();
    let (device, dtype) = (gradient.device(), float_dtype(gradient.dtype()));
    let len = len_q + len_kv - 1;
    let zeros = |shape: [usize; 4]| B::float_zeros(Shape::new(shape), &device, dtype);
    let sums = match len_q {
        1 => B::float_reshape(gradient, Shape::new([batch, heads_q, len])),
        _ => {
            // Rows one number shorter than the bias, one behind the other …
            let rows = match len - 1 - len_kv {
                0 => gradient,
                missing => {
                    let missing = zeros([batch, heads_q, len_q, missing]);
                    B::float_cat(vec![gradient, missing], 3)
                }
            };
            let rows = B::float_reshape(rows, Shape::new([batch, heads_q, 1, len_q * (len - 1)]));
            // … and, read in rows of the length of the bias, each moved by one more.
            let before = zeros([batch, heads_q, 1, len_q - 1]);
            let after = zeros([batch, heads_q, 1, 1]);
            let rows = B::float_cat(vec![before, rows, after], 3);
            let rows = B::float_reshape(rows, Shape::new([batch, heads_q, len_q, len]));
            let sums = B::float_sum_dim(rows, 2);
            B::float_reshape(sums, Shape::new([batch, heads_q, len]))
        }
    };
    reversed::<B>(sums)
}
