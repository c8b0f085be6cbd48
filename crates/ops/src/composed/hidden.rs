//! Everything that hides, as one bool tensor: true where a query may not see a key.

use burn::{
    backend::{
        Backend, TensorMetadata, get_or_init_device_settings,
        tensor::{BoolTensor, Device, FloatTensor, IntTensor},
    },
    tensor::{BoolDType, FloatDType, IntDType, Shape},
};
use burn_attn_kernels_cpu::CausalAlignment;

use super::{float_dtype, least};
use crate::{AttentionScalars, blocks::repeat};

/// What is hidden, kept as small as its parts allow: `[batch or 1, heads_q or 1, len_q or 1, len_kv or 1]`.
pub(super) struct Hidden<B: Backend> {
    tensor: Option<BoolTensor<B>>,
    /// Whether some key may be hidden from every query of its batch item.
    may_have_unseen: bool,
    /// Whether some query may see no key at all.
    may_have_blind: bool,
}

/// What may hide, besides causal mask and window.
pub(super) struct Parts<B: Backend> {
    pub(super) visible_blocks: Option<BoolTensor<B>>,
    pub(super) masked: Option<BoolTensor<B>>,
    pub(super) key_lengths: Option<IntTensor<B>>,
    /// Of the queries and of the keys.
    pub(super) segments: Option<(IntTensor<B>, IntTensor<B>)>,
    /// Each `[batch or 1, heads_q or 1, len_q or 1, len_kv or 1]`.
    pub(super) biases: [Option<FloatTensor<B>>; 2],
}

impl<B: Backend> Hidden<B> {
    pub(super) fn new(
        device: &Device<B>,
        [batch, _, len_q, len_kv]: [usize; 4],
        scalars: &AttentionScalars,
        parts: Parts<B>,
    ) -> Self {
        let Parts {
            visible_blocks,
            masked,
            key_lengths,
            segments,
            biases,
        } = parts;
        let settings = get_or_init_device_settings::<B>(device);
        let bool_dtype = settings.bool_dtype;
        let not_causal = masked.is_some()
            || visible_blocks.is_some()
            || key_lengths.is_some()
            || segments.is_some()
            || scalars.window.is_some()
            || biases.iter().any(Option::is_some);
        // With bottom-right alignment alone, the last query sees every key; with top-left alone, every query sees the first.
        let may_have_unseen = not_causal || scalars.causal == Some(CausalAlignment::TopLeft);
        let may_have_blind =
            not_causal || scalars.causal == Some(CausalAlignment::BottomRight) && len_q > len_kv;

        let structural = structural::<B>(
            device,
            len_q,
            len_kv,
            scalars,
            settings.int_dtype,
            bool_dtype,
        );
        let padding = key_lengths.map(|lengths| {
            // Not in the type of the lengths, which may be too narrow to count the keys.
            let dtype = settings.int_dtype;
            let keys = range::<B>(0..len_kv as i64, [1, 1, 1, len_kv], device, dtype);
            let lengths = B::int_cast(lengths, dtype);
            let lengths = B::int_reshape(lengths, Shape::new([batch, 1, 1, 1]));
            let shape = [batch, 1, 1, len_kv];
            B::int_greater_equal(
                expand_int::<B>(keys, shape),
                expand_int::<B>(lengths, shape),
                bool_dtype,
            )
        });
        let segments = segments.map(|(query, key)| {
            let query = B::int_reshape(query, Shape::new([batch, 1, len_q, 1]));
            let key = B::int_reshape(key, Shape::new([batch, 1, 1, len_kv]));
            let shape = [batch, 1, len_q, len_kv];
            B::int_not_equal(
                expand_int::<B>(query, shape),
                expand_int::<B>(key, shape),
                bool_dtype,
            )
        });
        let blocks = visible_blocks.zip(scalars.block_size);
        let blocks = blocks.map(|(visible, size)| {
            let visible = repeat::<B>(visible, 2, size.queries, len_q);
            let visible = repeat::<B>(visible, 3, size.keys, len_kv);
            B::bool_not(visible)
        });
        let [dense, distance] = biases.map(|bias| bias.map(|bias| hides::<B>(bias, bool_dtype)));
        let tensor = [
            structural, padding, segments, blocks, masked, dense, distance,
        ]
        .into_iter()
        .flatten()
        .reduce(either::<B>);
        Self {
            tensor,
            may_have_unseen,
            may_have_blind,
        }
    }

    /// Keys that no query of their batch item and of the heads they belong to sees,
    /// `[batch or 1, heads_kv or 1, len_kv or 1, 1]`.
    pub(super) fn unseen(&self, heads_kv: usize) -> Option<BoolTensor<B>> {
        if !self.may_have_unseen {
            return None;
        }
        let hidden = self.tensor.clone()?;
        let [batch, heads_q, len_q, len_kv] = hidden.shape().dims::<4>();
        // The heads that share a key/value head are rows of one, as in the product.
        let heads = heads_q.min(heads_kv);
        let queries = heads_q / heads * len_q;
        let grouped = B::bool_reshape(hidden, Shape::new([batch, heads, queries, len_kv]));
        let unseen = all::<B>(grouped, 2);
        Some(B::bool_reshape(
            unseen,
            Shape::new([batch, heads, len_kv, 1]),
        ))
    }

    /// Queries that see no key, `[batch or 1, heads_q or 1, len_q or 1, 1]`.
    pub(super) fn blind(&self) -> Option<BoolTensor<B>> {
        let hidden = self.tensor.clone().filter(|_| self.may_have_blind)?;
        Some(all::<B>(hidden, 3))
    }

    /// Stretched to the shape of the scores.
    pub(super) fn over(&self, scores: &Shape) -> Option<BoolTensor<B>> {
        let tensor = self.tensor.clone()?;
        Some(B::bool_expand(tensor, scores.clone()))
    }
}

/// Where a bias is −∞, which hides as a mask does.
fn hides<B: Backend>(bias: FloatTensor<B>, bool_dtype: BoolDType) -> BoolTensor<B> {
    let dtype: FloatDType = float_dtype(bias.dtype());
    B::float_lower_elem(bias, least(dtype).into(), bool_dtype)
}

/// Whether all entries of a dimension are true; it stays, with size 1.
fn all<B: Backend>(tensor: BoolTensor<B>, dim: usize) -> BoolTensor<B> {
    match tensor.shape().dims::<4>()[dim] {
        1 => tensor,
        _ => B::bool_all_dim(tensor, dim),
    }
}

/// Causal mask and window, `[1, 1, len_q, len_kv]`.
fn structural<B: Backend>(
    device: &Device<B>,
    len_q: usize,
    len_kv: usize,
    scalars: &AttentionScalars,
    int_dtype: IntDType,
    bool_dtype: BoolDType,
) -> Option<BoolTensor<B>> {
    let window = scalars.window.unwrap_or_default();
    if scalars.causal.is_none() && window.left.is_none() && window.right.is_none() {
        return None;
    }
    let offset = scalars.causal.unwrap_or_default().offset(len_q, len_kv) as i64;
    let shape = [1, 1, len_q, len_kv];
    let keys = range::<B>(0..len_kv as i64, [1, 1, 1, len_kv], device, int_dtype);
    let keys = expand_int::<B>(keys, shape);
    // Position of every query on the axis of the keys, shifted by the reach of a bound.
    let positions = |reach: i64| {
        let first = offset + reach;
        let positions = range::<B>(
            first..first + len_q as i64,
            [1, 1, len_q, 1],
            device,
            int_dtype,
        );
        expand_int::<B>(positions, shape)
    };
    let reach = |tokens: usize| {
        i64::try_from(tokens)
            .unwrap_or(i64::MAX)
            .min((len_q + len_kv) as i64)
    };

    // A causal mask is a window that reaches no key to the right.
    let right = match (scalars.causal, window.right) {
        (Some(_), _) => Some(0),
        (None, right) => right,
    };
    let after =
        right.map(|right| B::int_greater(keys.clone(), positions(reach(right)), bool_dtype));
    let before = window
        .left
        .map(|left| B::int_lower(keys, positions(-reach(left)), bool_dtype));
    [after, before].into_iter().flatten().reduce(either::<B>)
}

/// Hidden in either of two masks, stretched to their common shape.
fn either<B: Backend>(first: BoolTensor<B>, second: BoolTensor<B>) -> BoolTensor<B> {
    let (a, b) = (first.shape().dims::<4>(), second.shape().dims::<4>());
    let shape = Shape::new(core::array::from_fn::<_, 4, _>(|dim| a[dim].max(b[dim])));
    B::bool_or(
        B::bool_expand(first, shape.clone()),
        B::bool_expand(second, shape),
    )
}

fn range<B: Backend>(
    range: core::ops::Range<i64>,
    shape: [usize; 4],
    device: &Device<B>,
    dtype: IntDType,
) -> IntTensor<B> {
    B::int_reshape(B::int_arange(range, device, dtype), Shape::new(shape))
}

fn expand_int<B: Backend>(tensor: IntTensor<B>, shape: [usize; 4]) -> IntTensor<B> {
    B::int_expand(tensor, Shape::new(shape))
}
