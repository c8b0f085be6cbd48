//! The rule for the positions of queries where queries and keys are two sequences.

use burn::tensor::{Device, Int, Tensor};
use burn_attn_ops::backend::counting;

/// The position of each sequence's first query on the axis of its keys (tokens): one number for all, or one for each.
///
/// # Where queries stand
///
/// In the attention modules, one rule serves masks by position ([`causal`](crate::AttentionMask::causal),
/// [`window`](crate::AttentionMask::window)), ALiBi, the relative bias and rotary positions. Key `j` is at position `j`; query `i`
/// of sequence `b` is at position `offset[b] + i`. The offset is the first of these that applies:
///
/// | | offset |
/// | --- | --- |
/// | the `offset` of [`CrossAttentionInput`](crate::CrossAttentionInput::offset) or [`MultiHeadAttentionInput`](crate::MultiHeadAttentionInput::offset) | as given |
/// | [`causal_aligned`](crate::AttentionMask::causal_aligned) top-left | 0 |
/// | [`causal_aligned`](crate::AttentionMask::causal_aligned) bottom-right | key length of the sequence less `len_q`, but 0 in [`MultiHeadAttention`](crate::MultiHeadAttention) with `len_q == len_kv` |
/// | by default in [`CrossAttention`](crate::CrossAttention) | 0 |
/// | by default in [`MultiHeadAttention`](crate::MultiHeadAttention) with `len_q == len_kv` | 0: queries are padded as their keys are |
/// | by default in [`MultiHeadAttention`](crate::MultiHeadAttention) otherwise | key length of the sequence less `len_q`: the last query stands at the last key |
///
/// In [`SelfAttention`](crate::SelfAttention) the offset is 0. With a cache, also in cross-attention of a layer, the offset is the number of tokens that
/// the sequence has in the cache.
///
/// The key length of a sequence is what `lengths` of the input or [`AttentionMask::key_lengths`](crate::AttentionMask::key_lengths)
/// says, otherwise `len_kv`. Other masks may hide padding too, but say nothing about lengths. So a sequence gets the same result in
/// a batch and alone. Lengths of a mask are known to the device alone: a rotary encoding then takes at most as many queries as it has positions, where
/// those of an input tell it how far each sequence reaches.
///
/// With a negative offset, the first queries stand before the first key: a causal mask hides all keys from them, so their heads
/// give zeros, and a rotary encoding turns them by negative angles.
///
/// In the operation [`attention`](crate::ops::attention), which knows no modules, the last query stands at key `len_kv − 1`, whatever
/// the key lengths, unless [`query_offsets`](crate::AttentionOptions::query_offsets) say otherwise.
///
/// ```
/// use burn_attn::positions::QueryOffset;
///
/// assert_eq!(QueryOffset::from(7), QueryOffset::All(7));
/// assert_eq!(QueryOffset::from([7, -3]), QueryOffset::Each(vec![7, -3]));
/// assert_eq!(QueryOffset::from(vec![7_usize, 3]), QueryOffset::Each(vec![7, 3]));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryOffset {
    /// Every sequence's first query is at this position.
    All(i64),
    /// The first query of sequence `b` is at position `offsets[b]`.
    Each(Vec<i64>),
}

macro_rules! from_integers {
    ($($integer:ty: $widened:expr),*) => {$(
        impl From<$integer> for QueryOffset {
            fn from(offset: $integer) -> Self {
                Self::All($widened(offset))
            }
        }

        impl From<&[$integer]> for QueryOffset {
            fn from(offsets: &[$integer]) -> Self {
                Self::Each(offsets.iter().copied().map($widened).collect())
            }
        }

        impl From<Vec<$integer>> for QueryOffset {
            fn from(offsets: Vec<$integer>) -> Self {
                offsets.as_slice().into()
            }
        }

        impl<const N: usize> From<[$integer; N]> for QueryOffset {
            fn from(offsets: [$integer; N]) -> Self {
                offsets.as_slice().into()
            }
        }

        impl<const N: usize> From<&[$integer; N]> for QueryOffset {
            fn from(offsets: &[$integer; N]) -> Self {
                offsets.as_slice().into()
            }
        }
    )*};
}

// Saturates: no sequence has more tokens than 64 bits can count.
from_integers!(
    i32: i64::from,
    i64: i64::from,
    isize: |offset: isize| offset as i64,
    usize: |offset: usize| i64::try_from(offset).unwrap_or(i64::MAX)
);

/// An offset as a module has resolved it.
#[allow(
    clippy::large_enum_variant,
    reason = "a handle of a tensor, moved once per call; a box would be one more allocation"
)]
pub(crate) enum ResolvedOffset {
    /// One number for all sequences, or one for each.
    Host(Vec<i64>),
    /// One number for each sequence, that only the device knows.
    OnDevice(Tensor<1, Int>),
}

impl ResolvedOffset {
    /// The positions of `len` queries per sequence, sequence after sequence, or of one sequence that stands for all.
    pub(super) fn positions(&self, len: usize, device: &Device) -> Tensor<1, Int> {
        let first = match self {
            Self::Host(offsets) => Tensor::from_data(offsets.as_slice(), counting(device)),
            Self::OnDevice(offsets) => offsets.clone(),
        };
        let [count] = first.dims();
        let queries = Tensor::<1, Int>::arange(0..len as i64, counting(device));
        let queries = queries.reshape([1, len]);
        let first = first.reshape([count, 1]).expand([count, len]);
        (first + queries.expand([count, len])).reshape([count * len])
    }
}
