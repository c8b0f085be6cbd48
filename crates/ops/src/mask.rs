//! Which keys a query may see, as a value that composes.

use burn::tensor::{Bool, Int, Tensor};
use burn_attn_kernels_cpu::{CausalAlignment, Window};

/// Which keys each query may see: a conjunction of parts, every one of which must show a key.
///
/// Structural parts (causal, window, key lengths, segments) are kept as numbers, so that an implementation can skip
/// what is hidden; only [`masked`](Self::masked) and [`visible`](Self::visible) carry a dense tensor.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_attn_ops::AttentionMask;
///
/// let device = Device::default();
/// let lengths = Tensor::from_data([5, 3], &device);
/// let mask = AttentionMask::causal().and(AttentionMask::key_lengths(lengths));
/// ```
///
/// There is no polarity to guess: a dense mask says in the constructor's name what `true` means.
#[derive(Clone, Debug, Default)]
pub struct AttentionMask {
    pub(crate) causal: Option<CausalAlignment>,
    pub(crate) window: Option<Window>,
    pub(crate) key_lengths: Option<Tensor<1, Int>>,
    pub(crate) segments: Option<Segments>,
    pub(crate) masked: Option<Tensor<4, Bool>>,
}

/// Sequences packed into one row: a query sees only keys of its own segment.
#[derive(Clone, Debug)]
pub(crate) struct Segments {
    pub(crate) query: Tensor<2, Int>,
    pub(crate) key: Tensor<2, Int>,
}

impl AttentionMask {
    /// Every query sees every key.
    pub fn none() -> Self {
        Self::default()
    }

    /// No query sees a later key; the last query is aligned with the last key (bottom-right).
    ///
    /// PyTorch equivalent: `torch.nn.attention.bias.causal_lower_right`.
    pub fn causal() -> Self {
        Self::causal_aligned(CausalAlignment::BottomRight)
    }

    /// Causal with the alignment said by name; it matters only when `len_q != len_kv`.
    pub fn causal_aligned(alignment: CausalAlignment) -> Self {
        Self {
            causal: Some(alignment),
            ..Self::default()
        }
    }

    /// A query at position `p` sees the keys `p − left ..= p + right` (tokens).
    ///
    /// Source: Longformer (arXiv:2004.05150), Mistral 7B (arXiv:2310.06825). Positions are aligned bottom-right, or
    /// top-left together with a causal mask of that alignment.
    pub fn window(left: usize, right: usize) -> Self {
        Self {
            window: Some(Window {
                left: Some(left),
                right: Some(right),
            }),
            ..Self::default()
        }
    }

    /// Batch item `b` has `lengths[b]` real keys; those behind them are padding that nobody sees.
    ///
    /// # Shapes
    ///
    /// `lengths`: `[batch]`.
    pub fn key_lengths(lengths: Tensor<1, Int>) -> Self {
        Self {
            key_lengths: Some(lengths),
            ..Self::default()
        }
    }

    /// Keys whose token is `pad_id` are padding that nobody sees.
    ///
    /// # Shapes
    ///
    /// `tokens`: `[batch, len_kv]`.
    pub fn padding(tokens: Tensor<2, Int>, pad_id: i64) -> Self {
        let [batch, len_kv] = tokens.dims();
        Self::masked(tokens.equal_elem(pad_id).reshape([batch, 1, 1, len_kv]))
    }

    /// Several sequences packed into each row: a query sees a key only if their segment numbers are equal.
    ///
    /// # Shapes
    ///
    /// - `query`: `[batch, len_q]`
    /// - `key`: `[batch, len_kv]`
    pub fn segments(query: Tensor<2, Int>, key: Tensor<2, Int>) -> Self {
        Self {
            segments: Some(Segments { query, key }),
            ..Self::default()
        }
    }

    /// A dense mask in which `true` hides a key (the meaning of Burn's masks and of PyTorch's `key_padding_mask`).
    ///
    /// # Shapes
    ///
    /// `[batch or 1, heads_q or 1, len_q or 1, len_kv or 1]`: dimensions of size 1 are broadcast.
    pub fn masked(masked: Tensor<4, Bool>) -> Self {
        Self {
            masked: Some(masked),
            ..Self::default()
        }
    }

    /// A dense mask in which `true` shows a key (the meaning of PyTorch's `scaled_dot_product_attention`).
    ///
    /// # Shapes
    ///
    /// As [`masked`](Self::masked).
    pub fn visible(visible: Tensor<4, Bool>) -> Self {
        Self::masked(visible.bool_not())
    }

    /// Shows a key only if both masks show it.
    ///
    /// # Panics
    ///
    /// When one mask is causal bottom-right and the other causal top-left: one call has one alignment.
    pub fn and(self, other: Self) -> Self {
        let (segments, second_segments) = match (self.segments, other.segments) {
            (None, one) | (one, None) => (one, None),
            (first, second) => (first, second),
        };
        let second_segments = second_segments.map(|segments| {
            let query = segments.query.unsqueeze_dims::<4>(&[1, 3]);
            let key = segments.key.unsqueeze_dims::<4>(&[1, 2]);
            let dims = broadcast_dims(query.dims(), key.dims());
            query.expand(dims).not_equal(key.expand(dims))
        });
        let dense = merge(self.masked, other.masked, either_hides);
        Self {
            causal: merge(self.causal, other.causal, |first, second| {
                assert!(
                    first == second,
                    "a mask has one causal alignment, but {first:?} and {second:?} were combined"
                );
                first
            }),
            window: merge(self.window, other.window, |first, second| Window {
                left: merge(first.left, second.left, usize::min),
                right: merge(first.right, second.right, usize::min),
            }),
            key_lengths: merge(self.key_lengths, other.key_lengths, |first, second| {
                first.min_pair(second)
            }),
            segments,
            masked: merge(dense, second_segments, either_hides),
        }
    }

    /// Whether no part hides anything, whatever the sizes.
    pub fn is_none(&self) -> bool {
        self.causal.is_none()
            && self.window.is_none()
            && self.key_lengths.is_none()
            && self.segments.is_none()
            && self.masked.is_none()
    }
}

/// Both where both are there, else the one that is.
fn merge<T>(first: Option<T>, second: Option<T>, both: impl FnOnce(T, T) -> T) -> Option<T> {
    match (first, second) {
        (Some(first), Some(second)) => Some(both(first, second)),
        (one, None) | (None, one) => one,
    }
}

/// Hidden in either of two dense masks, broadcast against each other.
fn either_hides(first: Tensor<4, Bool>, second: Tensor<4, Bool>) -> Tensor<4, Bool> {
    let dims = broadcast_dims(first.dims(), second.dims());
    first.expand(dims).bool_or(second.expand(dims))
}

/// The shape two dense masks have in common when dimensions of size 1 stretch.
fn broadcast_dims(first: [usize; 4], second: [usize; 4]) -> [usize; 4] {
    core::array::from_fn(|dim| {
        let (a, b) = (first[dim], second[dim]);
        assert!(
            a == b || a == 1 || b == 1,
            "masks of shapes {first:?} and {second:?} do not broadcast: dimension {dim} is {a} and {b}"
        );
        if a == 1 { b } else { a }
    })
}
