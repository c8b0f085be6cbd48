//! Every part of a mask as one bool tensor: true where a query may not see a key.

use burn::{
    backend::{
        Backend, TensorMetadata, get_or_init_device_settings,
        tensor::{BoolTensor, Device, IntTensor},
    },
    tensor::{BoolDType, DType, IntDType, Shape},
};
use burn_attn_kernels_cpu::CausalAlignment;

use crate::{AttentionScalars, blocks::repeat};

/// What is hidden, kept as small as its parts allow: `[batch or 1, heads_q or 1, len_q or 1, len_kv]`.
pub(super) struct Hidden<B: Backend> {
    tensor: Option<BoolTensor<B>>,
    /// Whether some key may be hidden from every query of its batch item.
    may_have_unseen: bool,
}

impl<B: Backend> Hidden<B> {
    pub(super) fn new(
        device: &Device<B>,
        [batch, _, len_q, len_kv]: [usize; 4],
        scalars: &AttentionScalars,
        visible_blocks: Option<BoolTensor<B>>,
        masked: Option<BoolTensor<B>>,
        key_lengths: Option<IntTensor<B>>,
        segments: Option<(IntTensor<B>, IntTensor<B>)>,
    ) -> Self {
        let settings = get_or_init_device_settings::<B>(device);
        let bool_dtype = settings.bool_dtype;
        // With bottom-right alignment alone, the last query sees every key.
        let may_have_unseen = masked.is_some()
            || visible_blocks.is_some()
            || key_lengths.is_some()
            || segments.is_some()
            || scalars.window.is_some()
            || scalars.causal == Some(CausalAlignment::TopLeft);

        let structural = structural::<B>(
            device,
            len_q,
            len_kv,
            scalars,
            settings.int_dtype,
            bool_dtype,
        );
        let padding = key_lengths.map(|lengths| {
            let dtype = int_dtype(lengths.dtype());
            let keys = range::<B>(0..len_kv as i64, [1, 1, 1, len_kv], device, dtype);
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
        let tensor = [structural, padding, segments, blocks, masked]
            .into_iter()
            .flatten()
            .reduce(either::<B>);
        Self {
            tensor,
            may_have_unseen,
        }
    }

    /// Keys that no query of their batch item sees, `[batch or 1, 1, len_kv, 1]`.
    pub(super) fn unseen(&self) -> Option<BoolTensor<B>> {
        if !self.may_have_unseen {
            return None;
        }
        let mut unseen = self.tensor.clone()?;
        for dim in [1, 2] {
            if unseen.shape().dims::<4>()[dim] != 1 {
                unseen = B::bool_all_dim(unseen, dim);
            }
        }
        let [batch, _, _, len_kv] = unseen.shape().dims::<4>();
        Some(B::bool_reshape(unseen, Shape::new([batch, 1, len_kv, 1])))
    }

    /// Stretched to the shape of the scores.
    pub(super) fn into_tensor(self, scores: Shape) -> Option<BoolTensor<B>> {
        self.tensor.map(|tensor| B::bool_expand(tensor, scores))
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

pub(super) fn range<B: Backend>(
    range: core::ops::Range<i64>,
    shape: [usize; 4],
    device: &Device<B>,
    dtype: IntDType,
) -> IntTensor<B> {
    B::int_reshape(B::int_arange(range, device, dtype), Shape::new(shape))
}

pub(super) fn expand_int<B: Backend>(tensor: IntTensor<B>, shape: [usize; 4]) -> IntTensor<B> {
    B::int_expand(tensor, Shape::new(shape))
}

fn int_dtype(dtype: DType) -> IntDType {
    dtype.into()
}
