//! All masks as one bool tensor: true where a query may not see a key.

use core::ops::Range;

use super::{
    dtype::{counting_dtype, is_minus_infinity, of_device},
    part::{Part, clamped},
    position::{Reach, either, expand_int, range},
};
use crate::{
    backend::{AttentionScalars, MaskInputs},
    blocks::repeat,
};
use burn::{
    backend::{
        Backend, TensorMetadata, get_or_init_device_settings,
        tensor::{BoolTensor, Device, FloatTensor},
    },
    tensor::Shape,
};

/// What is hidden, kept as small as its parts allow: `[batch or 1, heads_q or 1, len_q or 1, len_kv or 1]`.
pub(crate) struct Hidden<B: Backend> {
    tensor: Option<BoolTensor<B>>,
    /// Whether some key may be hidden from every query of its batch item.
    may_have_unseen: bool,
    /// Whether some query may see no key at all.
    may_have_rows_without_keys: bool,
}

impl<B: Backend> Hidden<B> {
    /// For one part of a call's scores, from the operands that belong to it and what the mask's functions hide of it. `biases` are
    /// `[batch or 1, heads_q or 1, queries or 1, keys or 1]`.
    pub(crate) fn new(
        device: &Device<B>,
        batch: usize,
        part: &Part,
        (mask, by_functions): (MaskInputs<B>, Option<BoolTensor<B>>),
        scalars: &AttentionScalars,
        biases: [Option<FloatTensor<B>>; 2],
    ) -> Self {
        let (len_q, len_kv) = (part.queries.len(), part.keys.len());
        let bool_dtype = get_or_init_device_settings::<B>(device).bool_dtype;
        let reach = Reach::of_part(part, scalars, &mask);
        let (query_offsets, first_keys) = (mask.query_offsets, mask.first_keys);
        let offsets = query_offsets.into_option();
        let by_position = reach.hidden::<B>(device, batch, part, offsets, first_keys.into_option());
        let padding = mask.key_lengths.into_option().map(|lengths| {
            // Not in the type of the lengths, which may be too narrow to count the keys.
            let dtype = counting_dtype::<B>(device);
            let keys = part.keys.start as i64..part.keys.end as i64;
            let keys = range::<B>(keys, [1, 1, 1, len_kv], device, dtype);
            let lengths = clamped::<B>(lengths, 0..=part.keys.end as i64, dtype);
            let lengths = B::int_reshape(lengths, Shape::new([batch, 1, 1, 1]));
            let shape = [batch, 1, 1, len_kv];
            let [keys, lengths] = [keys, lengths].map(|x| expand_int::<B>(x, shape));
            B::int_greater_equal(keys, lengths, bool_dtype)
        });
        let of_queries = mask.query_segments.into_option();
        let segments = of_queries.zip(mask.key_segments.into_option());
        let segments = segments.map(|(query, key)| {
            let query = B::int_reshape(query, Shape::new([batch, 1, len_q, 1]));
            let key = B::int_reshape(key, Shape::new([batch, 1, 1, len_kv]));
            let shape = [batch, 1, len_q, len_kv];
            let [query, key] = [query, key].map(|x| expand_int::<B>(x, shape));
            B::int_not_equal(query, key, bool_dtype)
        });
        let blocks = mask.visible_blocks.into_option().zip(scalars.block_size);
        let blocks = blocks.map(|(visible, size)| {
            let visible = of_device::<B>(visible);
            // The part may begin and end inside a block.
            let inside = |tokens: &Range<usize>, size: usize| {
                let start = tokens.start % size;
                start..start + tokens.len()
            };
            let queries = inside(&part.queries, size.queries);
            let visible = repeat::<B>(visible, 2, size.queries, queries);
            let keys = inside(&part.keys, size.keys);
            let visible = repeat::<B>(visible, 3, size.keys, keys);
            B::bool_not(visible)
        });
        let masked = mask.masked.into_option().map(of_device::<B>);
        let by_biases = biases.map(|bias| bias.map(is_minus_infinity::<B>));
        let by_tensors = [padding, segments, blocks, masked, by_functions];
        let by_tensors = by_tensors.into_iter().chain(by_biases).flatten();
        let by_tensors = by_tensors.reduce(either::<B>);
        let may_hide_any = by_tensors.is_some();
        let parts = [by_position, by_tensors].into_iter().flatten();
        Self {
            tensor: parts.reduce(either::<B>),
            may_have_unseen: may_hide_any || reach.leaves_unseen(len_q, len_kv),
            may_have_rows_without_keys: may_hide_any
                || reach.leaves_rows_without_keys(len_q, len_kv),
        }
    }

    /// Keys that are hidden from all queries of their batch item and group of heads,
    /// `[batch or 1, heads_kv or 1, len_kv or 1, 1]`.
    pub(super) fn unseen(&self, heads_kv: usize) -> Option<BoolTensor<B>> {
        if !self.may_have_unseen {
            return None;
        }
        let hidden = self.tensor.clone()?;
        let [batch, heads_q, len_q, len_kv] = hidden.shape().dims::<4>();
        // The heads that share a key/value head are rows of one matrix, as in the product.
        let heads = heads_q.min(heads_kv);
        let queries = heads_q / heads * len_q;
        let grouped = B::bool_reshape(hidden, Shape::new([batch, heads, queries, len_kv]));
        let unseen = Shape::new([batch, heads, len_kv, 1]);
        Some(B::bool_reshape(all::<B>(grouped, 2), unseen))
    }

    /// Rows without visible keys, `[batch or 1, heads_q or 1, len_q or 1, 1]`.
    pub(super) fn rows_without_keys(&self) -> Option<BoolTensor<B>> {
        let hidden = self.tensor.clone()?;
        self.may_have_rows_without_keys.then(|| all::<B>(hidden, 3))
    }

    /// True where a pair is hidden; `None` if none is.
    pub(crate) fn into_tensor(self) -> Option<BoolTensor<B>> {
        self.tensor
    }

    /// Broadcast to the shape of the scores.
    pub(super) fn over(&self, scores: &Shape) -> Option<BoolTensor<B>> {
        let tensor = self.tensor.clone()?;
        Some(B::bool_expand(tensor, scores.clone()))
    }
}

/// Whether all entries of a dimension are true; the dimension is kept, with size 1.
fn all<B: Backend>(tensor: BoolTensor<B>, dim: usize) -> BoolTensor<B> {
    match tensor.shape().dims::<4>()[dim] {
        1 => tensor,
        _ => B::bool_all_dim(tensor, dim),
    }
}
