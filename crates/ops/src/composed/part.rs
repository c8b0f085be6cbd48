//! A part of the scores, and the operands that belong to it.

use core::ops::{Range, RangeInclusive};

use burn::{
    backend::{
        Backend, TensorMetadata,
        tensor::{BoolTensor, FloatTensor, IntTensor},
    },
    tensor::{DType, IntDType, Shape, Slice},
};

use super::dtype::counting_dtype;
use crate::backend::{MaskInputs, ScoreInputs};

/// Some queries and some keys of a call.
pub(crate) struct Part {
    pub(crate) queries: Range<usize>,
    pub(crate) keys: Range<usize>,
    /// Number of queries in the whole call.
    pub(crate) len_q: usize,
    /// Number of keys in the whole call.
    pub(crate) len_kv: usize,
}

impl Part {
    pub(crate) fn whole(len_q: usize, len_kv: usize) -> Self {
        Self {
            queries: 0..len_q,
            keys: 0..len_kv,
            len_q,
            len_kv,
        }
    }

    /// The position of the part's first query among the part's keys, minus the position of the call's first query among the
    /// call's keys.
    pub(crate) fn shift(&self) -> i64 {
        self.queries.start as i64 - self.keys.start as i64
    }

    /// Which entries of a bias by distance the part reads: a pair has entry `i − j + len_kv − 1`, in the call and in the part, each with its
    /// indices and number of keys.
    pub(crate) fn distances(&self) -> Range<usize> {
        let first = self.queries.start + self.len_kv - self.keys.end;
        first..first + self.queries.len() + self.keys.len() - 1
    }

    /// The operands of the part's queries and keys, from operands that are [`aligned`]. A part that is the whole call copies
    /// nothing.
    pub(crate) fn of<B: Backend>(&self, inputs: &ScoreInputs<B>) -> ScoreInputs<B> {
        let inputs = inputs.clone();
        let (mask, scalars) = (inputs.mask, inputs.scalars);
        let distances = self.distances();
        let bools = |mask, queries: &Range<usize>, keys: &Range<usize>| {
            narrow_bool::<B>(narrow_bool::<B>(mask, 2, queries), 3, keys)
        };
        let blocks = |table| {
            let size = scalars.block_size.expect("a table of blocks has a size");
            let queries = entries(&self.queries, size.queries);
            bools(table, &queries, &entries(&self.keys, size.keys))
        };
        let ints = |tensor, tokens| narrow_int::<B>(tensor, 1, tokens);
        ScoreInputs {
            query: narrow::<B>(inputs.query, 2, &self.queries),
            key: narrow::<B>(inputs.key, 2, &self.keys),
            bias: inputs.bias.map(|bias| {
                let bias = narrow::<B>(bias, 2, &self.queries);
                narrow::<B>(bias, 3, &self.keys)
            }),
            distance_bias: inputs
                .distance_bias
                .map(|bias| narrow::<B>(bias, 2, &distances)),
            mask: MaskInputs {
                visible_blocks: mask.visible_blocks.map(blocks),
                masked: mask.masked.map(|it| bools(it, &self.queries, &self.keys)),
                query_segments: mask.query_segments.map(|it| ints(it, &self.queries)),
                key_segments: mask.key_segments.map(|it| ints(it, &self.keys)),
                ..mask
            },
            // Functions find the part's entries in what they have captured themselves.
            ..inputs
        }
    }
}

/// The operands with the distance bias in the form that every part reads, `[batch or 1, heads_q, len_q + len_kv − 1]`, entry
/// `i − j + len_kv − 1` for score `(i, j)`: with query offsets, each batch item has other entries.
pub(crate) fn aligned<B: Backend>(mut inputs: ScoreInputs<B>) -> ScoreInputs<B> {
    let len_q = inputs.query.shape().dims::<4>()[2];
    let len_kv = inputs.key.shape().dims::<4>()[2];
    let offsets = inputs.mask.query_offsets.as_ref();
    inputs.distance_bias = inputs
        .distance_bias
        .map(|bias| aligned_distances::<B>(bias, offsets, [len_q, len_kv]));
    inputs
}

/// A distance bias `[heads_q, _]` in the form of [`aligned`].
pub(crate) fn aligned_distances<B: Backend>(
    bias: FloatTensor<B>,
    offsets: Option<&IntTensor<B>>,
    lengths: [usize; 2],
) -> FloatTensor<B> {
    let [heads_q, entries] = bias.shape().dims::<2>();
    let bias = B::float_reshape(bias, Shape::new([1, heads_q, entries]));
    let Some(offsets) = offsets else {
        return bias;
    };
    let places = entries_by_offset::<B>(offsets, heads_q, lengths);
    let shape = Shape::new([offsets.shape()[0], heads_q, entries]);
    B::float_gather(2, B::float_expand(bias, shape), places)
}

/// The entries of the distance bias that belong to each batch item with query offsets,
/// `[batch, heads_q, len_q + len_kv − 1]`.
pub(crate) fn entries_by_offset<B: Backend>(
    offsets: &IntTensor<B>,
    heads_q: usize,
    [len_q, len_kv]: [usize; 2],
) -> IntTensor<B> {
    let batch = offsets.shape()[0];
    let len = len_q + len_kv - 1;
    let dtype = counting_dtype::<B>(&offsets.device());
    let first = clamped_offsets::<B>(offsets, [len_q, len_kv]);
    let first = B::int_add_scalar(first, (len_q as i64).into());
    let first = B::int_reshape(first, Shape::new([batch, 1, 1]));
    let shape = Shape::new([batch, heads_q, len]);
    let entries = B::int_arange(0..len as i64, &offsets.device(), dtype);
    let entries = B::int_reshape(entries, Shape::new([1, 1, len]));
    let [entries, first] = [entries, first].map(|x| B::int_expand(x, shape.clone()));
    B::int_add(entries, first)
}

/// The offsets in the type in which the device counts, clamped to their range, which is unchecked where a check would wait for
/// the device.
pub(crate) fn clamped_offsets<B: Backend>(
    offsets: &IntTensor<B>,
    [len_q, len_kv]: [usize; 2],
) -> IntTensor<B> {
    let dtype = counting_dtype::<B>(&offsets.device());
    clamped::<B>(offsets.clone(), -(len_q as i64)..=len_kv as i64, dtype)
}

/// Numbers of any integer type in this range and type. A wider type is clamped before the cast, which could bring a number from
/// outside into the range; a narrower one may not hold the range.
pub(super) fn clamped<B: Backend>(
    tensor: IntTensor<B>,
    range: RangeInclusive<i64>,
    dtype: IntDType,
) -> IntTensor<B> {
    let (least, most) = range.into_inner();
    let tensor = match tensor.dtype() {
        DType::I64 if dtype != IntDType::I64 => B::int_clamp(tensor, least.into(), most.into()),
        DType::U64 | DType::U32 => B::int_clamp_max(tensor, most.into()),
        _ => tensor,
    };
    // Only if the type differs: Burn 0.22.1's remote servers cannot cast integers.
    let tensor = match tensor.dtype() == dtype.into() {
        true => tensor,
        false => B::int_cast(tensor, dtype),
    };
    B::int_clamp(tensor, least.into(), most.into())
}

/// The entries of a table for the blocks of `size` that contain some of `tokens`.
fn entries(tokens: &Range<usize>, size: usize) -> Range<usize> {
    tokens.start / size..tokens.end.div_ceil(size)
}

macro_rules! narrow {
    ($name:ident, $tensor:ident, $slice:ident) => {
        /// A range of a dimension. A single entry stands for all and is kept.
        pub(crate) fn $name<B: Backend>(
            tensor: $tensor<B>,
            dim: usize,
            range: &Range<usize>,
        ) -> $tensor<B> {
            let shape = tensor.shape();
            if shape[dim] == 1 || shape[dim] == range.len() {
                return tensor;
            }
            let mut slices = vec![Slice::full(); shape.num_dims()];
            slices[dim] = Slice::from(range.clone());
            B::$slice(tensor, &slices)
        }
    };
}

narrow!(narrow, FloatTensor, float_slice);
narrow!(narrow_bool, BoolTensor, bool_slice);
narrow!(narrow_int, IntTensor, int_slice);
