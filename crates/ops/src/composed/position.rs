//! The mask by position in the general bodies: as ranges of visible keys, and as a tensor of bools.

use core::ops::Range;

use burn::{
    backend::{
        Backend, TensorMetadata, get_or_init_device_settings,
        tensor::{BoolTensor, Device, IntTensor},
    },
    tensor::{IntDType, Shape},
};
use burn_attn_kernels_cpu::Window;

use super::{
    dtype::counting_dtype,
    part::{Part, clamped, clamped_offsets},
};
use crate::{
    backend::{AttentionScalars, MaskInputs},
    combined::broadcast_dims,
};

/// The keys that the causal mask and the window show, counted from a query's position on the axis of the keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    /// The position of the first query; `None` if the position differs between batch items.
    pub(crate) first: Option<i64>,
    pub(crate) left: Option<i64>,
    pub(crate) right: Option<i64>,
    /// Whether first keys that position does not hide stay causal, if there are any.
    pub(crate) first_keys: Option<bool>,
}

impl Reach {
    /// For the queries of a part, on the axis of its keys. Bounds that hide none of these keys are left out.
    pub(super) fn of_part<B: Backend>(
        part: &Part,
        scalars: &AttentionScalars,
        mask: &MaskInputs<B>,
    ) -> Self {
        let whole = Self::new(scalars, mask, part.len_q, part.len_kv);
        let Some(first) = whole.first.map(|first| first + part.shift()) else {
            return whole;
        };
        let (queries, keys) = (part.queries.len() as i64, part.keys.len() as i64);
        Self {
            first: Some(first),
            left: whole.left.filter(|left| first + queries - 1 - left > 0),
            right: whole.right.filter(|right| first + right < keys - 1),
            ..whole
        }
    }

    /// Whether batch items differ in the position of their first query, and in their first keys, is known from `mask`.
    pub(crate) fn new<B: Backend>(
        scalars: &AttentionScalars,
        mask: &MaskInputs<B>,
        len_q: usize,
        len_kv: usize,
    ) -> Self {
        let Window { left, right } = scalars.by_position.reach();
        // A bound longer than both sequences is equivalent to none, and does not overflow.
        let tokens = |tokens: usize| tokens.min(len_q + len_kv) as i64;
        Self {
            first: (mask.query_offsets.as_ref().is_none())
                .then(|| scalars.by_position.offset(len_q, len_kv) as i64),
            left: left.map(tokens),
            right: right.map(tokens),
            first_keys: (mask.first_keys.as_ref()).map(|_| scalars.first_keys_are_causal),
        }
    }

    /// The keys, out of `len_kv`, that at least one of the queries may see.
    pub(crate) fn keys(&self, queries: &Range<usize>, len_kv: usize) -> Range<usize> {
        let Some(first) = self.first else {
            return 0..len_kv;
        };
        let key = |position: i64| position.clamp(0, len_kv as i64) as usize;
        let (start, end) = (first + queries.start as i64, first + queries.end as i64);
        let start = self.left.map_or(0, |left| key(start - left));
        let end = self.right.map_or(len_kv, |right| key(end + right));
        match self.first_keys {
            None => start..end.max(start),
            Some(true) => 0..end,
            Some(false) => 0..len_kv,
        }
    }

    /// How many keys a query may see besides the key at its position, if both sides are bounded and the host knows the position.
    pub(crate) fn width(&self) -> Option<usize> {
        let (Some(_), Some(left), Some(right), None) =
            (self.first, self.left, self.right, self.first_keys)
        else {
            return None;
        };
        usize::try_from(left + right).ok()
    }

    /// Whether it hides anything.
    fn is_bounded(&self) -> bool {
        self.left.is_some() || self.right.is_some()
    }

    /// Whether bounds are counted from positions, or joined by keys, that only the device knows.
    fn is_unknown(&self) -> bool {
        (self.first.is_none() || self.first_keys.is_some()) && self.is_bounded()
    }

    /// Whether one of `len_kv` keys may be hidden from all of `len_q` queries.
    pub(crate) fn leaves_unseen(&self, len_q: usize, len_kv: usize) -> bool {
        self.is_unknown() || self.keys(&(0..len_q), len_kv) != (0..len_kv)
    }

    /// Whether one of `len_q` queries may see none of `len_kv` keys.
    pub(crate) fn leaves_rows_without_keys(&self, len_q: usize, len_kv: usize) -> bool {
        self.is_unknown()
            || self.keys(&(0..1), len_kv).is_empty()
            || self.keys(&(len_q - 1..len_q), len_kv).is_empty()
    }

    /// True where a pair of the part is hidden, `[batch or 1, 1, queries, keys]`; `None` if none is.
    pub(super) fn hidden<B: Backend>(
        self,
        device: &Device<B>,
        batch: usize,
        part: &Part,
        query_offsets: Option<IntTensor<B>>,
        first_keys: Option<IntTensor<B>>,
    ) -> Option<BoolTensor<B>> {
        if !self.is_bounded() {
            return None;
        }
        let bool_dtype = get_or_init_device_settings::<B>(device).bool_dtype;
        let int_dtype = counting_dtype::<B>(device);
        let (len_q, len_kv) = (part.queries.len(), part.keys.len());
        // The position of the first query, `[batch or 1, 1, 1, 1]`.
        let first = match query_offsets {
            Some(offsets) => {
                let first = clamped_offsets::<B>(&offsets, [part.len_q, part.len_kv]);
                let first = B::int_add_scalar(first, part.shift().into());
                B::int_reshape(first, Shape::new([batch, 1, 1, 1]))
            }
            None => {
                let first = self.first.unwrap_or_default();
                range::<B>(first..first + 1, [1; 4], device, int_dtype)
            }
        };
        let rows = first.shape()[0];
        let shape = [rows, 1, len_q, len_kv];
        let keys = range::<B>(0..len_kv as i64, [1, 1, 1, len_kv], device, int_dtype);
        let keys = expand_int::<B>(keys, shape);
        // The position of every query, shifted by the reach of a bound.
        let positions = |by: i64| {
            let column = [rows, 1, len_q, 1];
            let queries = by..by + len_q as i64;
            let queries = range::<B>(queries, [1, 1, len_q, 1], device, int_dtype);
            let first = expand_int::<B>(first.clone(), column);
            let positions = B::int_add(expand_int::<B>(queries, column), first);
            expand_int::<B>(positions, shape)
        };
        let after = |right| B::int_greater(keys.clone(), positions(right), bool_dtype);
        let before = |left: i64| B::int_lower(keys.clone(), positions(-left), bool_dtype);
        let (after, before) = (self.right.map(after), self.left.map(before));
        let Some(counts) = first_keys else {
            return [after, before].into_iter().flatten().reduce(either::<B>);
        };
        let counts = clamped::<B>(counts, 0..=part.len_kv as i64, int_dtype);
        let counts = B::int_sub_scalar(counts, (part.keys.start as i64).into());
        let counts = B::int_reshape(counts, Shape::new([batch, 1, 1, 1]));
        let column = [batch, 1, 1, len_kv];
        let not_first = range::<B>(0..len_kv as i64, [1, 1, 1, len_kv], device, int_dtype);
        let [not_first, counts] = [not_first, counts].map(|x| expand_int::<B>(x, column));
        let not_first = B::int_greater_equal(not_first, counts, bool_dtype);
        let unless_first = |hidden| both::<B>(hidden, not_first.clone());
        // What stays causal is hidden after its query even if it is one of the first.
        let after = match self.first_keys {
            Some(true) => after,
            _ => after.map(unless_first),
        };
        let before = before.map(unless_first);
        [after, before].into_iter().flatten().reduce(either::<B>)
    }
}

/// Hidden in either of two masks, broadcast to their common shape.
pub(crate) fn either<B: Backend>(first: BoolTensor<B>, second: BoolTensor<B>) -> BoolTensor<B> {
    let [first, second] = of_one_shape::<B>([first, second]);
    B::bool_or(first, second)
}

/// Hidden in both of two masks, broadcast to their common shape.
pub(crate) fn both<B: Backend>(first: BoolTensor<B>, second: BoolTensor<B>) -> BoolTensor<B> {
    let [first, second] = of_one_shape::<B>([first, second]);
    B::bool_and(first, second)
}

fn of_one_shape<B: Backend>(masks: [BoolTensor<B>; 2]) -> [BoolTensor<B>; 2] {
    let [a, b] = [&masks[0], &masks[1]].map(|mask| mask.shape().dims::<4>());
    let shape = Shape::new(broadcast_dims(a, b));
    masks.map(|mask| B::bool_expand(mask, shape.clone()))
}

pub(super) fn range<B: Backend>(
    range: Range<i64>,
    shape: [usize; 4],
    device: &Device<B>,
    dtype: IntDType,
) -> IntTensor<B> {
    B::int_reshape(B::int_arange(range, device, dtype), Shape::new(shape))
}

pub(super) fn expand_int<B: Backend>(tensor: IntTensor<B>, shape: [usize; 4]) -> IntTensor<B> {
    B::int_expand(tensor, Shape::new(shape))
}
