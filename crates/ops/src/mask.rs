//! Which keys a query may see, as a value that composes.

use burn::{
    backend::Dispatch,
    tensor::{Bool, Int, Tensor},
};
use burn_attn_kernels_cpu::{BlockSize, CausalAlignment, PositionMask, Window};

use crate::{
    blocks::{VisibleBlocks, check_size, of_nothing},
    combined::{are_one, broadcast_dims},
    composed::{of_device, position::either},
    function::{MaskFunction, captured::with_ones_behind},
    segments::{Segments, common_type},
};

/// Which keys each query may see: a conjunction of parts. A key is visible if no part hides it; [`or`](Self::or) makes a part of
/// alternatives.
///
/// | part | what it takes | memory |
/// | --- | --- | --- |
/// | [`causal`](Self::causal), [`window`](Self::window) | nothing, two numbers | none |
/// | [`key_lengths`](Self::key_lengths) | a length per sequence | `batch` numbers |
/// | [`segments`](Self::segments) | a number per token: packed sequences | `batch · (len_q + len_kv)` numbers |
/// | [`visible_blocks`](Self::visible_blocks) | a bool per block of queries and keys: block-sparse attention | the table |
/// | [`padding`](Self::padding) | token ids, and the id of padding | `batch · len_kv` bools |
/// | [`mask_pad`](Self::mask_pad), [`mask_attn`](Self::mask_attn) | Burn's masks, tensors of bools | the tensor |
/// | [`masked`](Self::masked), [`visible`](Self::visible) | a dense tensor of bools | the tensor |
/// | [`function`](Self::function) | a function of the indices of queries and keys | none |
/// | [`or`](Self::or) | two masks | none, or a dense tensor |
///
/// The parts in the first four rows, and some unions, are structural: an implementation can skip what they hide. Dimensions of size 1 of dense
/// masks and tables are broadcast without a copy. The call of attention panics, with one sentence, if a tensor does not have the shape that its constructor names.
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
/// There is no polarity to guess: the name of the constructor says what `true` means. [`pytorch`](crate::pytorch) lists
/// what PyTorch's masks become.
#[derive(Clone, Debug, Default)]
pub struct AttentionMask {
    pub(crate) by_position: PositionMask,
    /// Whether the caller named the causal alignment, instead of taking the default.
    pub(crate) alignment_is_named: bool,
    pub(crate) key_lengths: Option<Tensor<1, Int>>,
    pub(crate) segments: Option<Segments>,
    pub(crate) visible_blocks: Vec<VisibleBlocks>,
    pub(crate) masked: Option<Tensor<4, Bool>>,
    /// The shapes of masks of padding in `masked`, which may not be broadcast: `[batch, len_kv]`.
    pub(crate) padding: Vec<[usize; 2]>,
    /// The shapes of segments that are in `masked`, likewise: `[batch, len_q]` and `[batch, len_kv]`.
    pub(crate) dense_segments: Vec<[[usize; 2]; 2]>,
    pub(crate) functions: Vec<MaskFunction>,
    /// Pairs of masks, of which one has to show a key.
    pub(crate) unions: Vec<[AttentionMask; 2]>,
}

impl AttentionMask {
    /// Every query sees every key.
    pub fn none() -> Self {
        Self::default()
    }

    /// No query sees a later key. The last query is aligned with the last key (bottom-right), unless a mask in the same call
    /// names the alignment. Modules of `burn-attn` place their queries by `QueryOffset` instead.
    ///
    /// # Source
    ///
    /// "Attention is all you need" (arXiv:1706.03762), section 3.2.3; the alignment is FlashAttention's since 2.1. PyTorch
    /// equivalent: `torch.nn.attention.bias.causal_lower_right`.
    pub fn causal() -> Self {
        Self {
            by_position: PositionMask::causal(CausalAlignment::default()),
            ..Self::default()
        }
    }

    /// Causal with the given alignment, which matters only when `len_q != len_kv`. In modules of `burn-attn`, the alignment
    /// wins over the default of the module, which [`causal`](Self::causal) follows.
    ///
    /// PyTorch equivalent: `is_causal=True` of `scaled_dot_product_attention` is [`CausalAlignment::TopLeft`].
    pub fn causal_aligned(alignment: CausalAlignment) -> Self {
        Self {
            by_position: PositionMask::causal(alignment),
            alignment_is_named: true,
            ..Self::default()
        }
    }

    /// A query at position `p` sees the keys `p − left ..= p + right` (tokens); `usize::MAX` leaves a side open.
    ///
    /// Positions are aligned bottom-right, or top-left with a causal mask of that alignment. Modules of `burn-attn` place their
    /// queries by `QueryOffset` instead.
    ///
    /// # Source
    ///
    /// Longformer (arXiv:2004.05150), Mistral 7B (arXiv:2310.06825).
    pub fn window(left: usize, right: usize) -> Self {
        let [left, right] = [left, right].map(Some);
        Self {
            by_position: PositionMask::window(Window { left, right }),
            ..Self::default()
        }
    }

    /// Batch item `b` has `lengths[b]` real keys, from 0 to `len_kv`. The keys after them are padding, hidden from every query.
    ///
    /// # Panics
    ///
    /// In the call of attention on flex and ndarray, when a length is negative or exceeds `len_kv`, unless it is part of a union, where it shows
    /// no key or all. On every other backend, Burn's `cpu` and
    /// LibTorch included, a check would wait for the device: there, a length beyond the keys hides nothing, and a negative length hides
    /// every key.
    pub fn key_lengths(lengths: Tensor<1, Int>) -> Self {
        Self {
            key_lengths: Some(lengths),
            ..Self::default()
        }
    }

    /// Keys whose token, one of `[batch, len_kv]`, is `pad_id` are padding, hidden from every query.
    pub fn padding(tokens: Tensor<2, Int>, pad_id: i64) -> Self {
        Self::mask_pad(tokens.equal_elem(pad_id))
    }

    /// The `mask_pad` of Burn's attention inputs, `[batch, len_kv]`: `true` hides a key from every query, as padding.
    ///
    /// Where all padding is at the end, [`key_lengths`](Self::key_lengths) takes less memory, and on flex and ndarray no time.
    pub fn mask_pad(padding: Tensor<2, Bool>) -> Self {
        Self {
            padding: vec![padding.dims()],
            ..Self::masked(with_ones_behind(padding).permute([0, 2, 3, 1]))
        }
    }

    /// The `mask_attn` of Burn's attention inputs, `[batch or 1, len_q or 1, len_kv or 1]`: `true` hides a key from a query of its batch
    /// item, in every head. Dimensions of size 1 are broadcast.
    ///
    /// Burn's `generate_autoregressive_mask` is [`causal`](Self::causal) here, without a tensor.
    pub fn mask_attn(masked: Tensor<3, Bool>) -> Self {
        let [batch, len_q, len_kv] = masked.dims();
        // The dimension of 1 goes last: `reshape` reads 0 as "unchanged", and a length may be 0.
        let masked = masked.reshape([batch, len_q, len_kv, 1]);
        Self::masked(masked.permute([0, 3, 1, 2]))
    }

    /// Several sequences packed into each row: a query sees a key only if their segment numbers, `[batch, len_q]` and `[batch, len_kv]`,
    /// are equal. Where queries and keys have the same segments, a causal mask, a window and distances count as they would in each sequence
    /// alone.
    ///
    /// # Source
    ///
    /// Krell et al., "Efficient sequence packing without cross-contamination" (arXiv:2107.02027). PyTorch equivalent: document
    /// masking in `flex_attention`.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use burn_attn_ops::AttentionMask;
    ///
    /// // One row holds a text of three tokens and one of two.
    /// let segments = Tensor::from_data([[0, 0, 0, 1, 1]], &Device::default());
    /// let mask = AttentionMask::segments(segments.clone(), segments).and(AttentionMask::causal());
    /// ```
    pub fn segments(query: Tensor<2, Int>, key: Tensor<2, Int>) -> Self {
        Self {
            segments: Some(Segments { query, key }),
            ..Self::default()
        }
    }

    /// Block-sparse attention: a query sees a key only if the entry for their blocks is `true`.
    ///
    /// `size` is the number of queries and of keys per block: one number for both, or `[queries, keys]`. Query `i` and key `j`
    /// belong to entry `(i / queries, j / keys)`: blocks are counted from the first query and the first key, whatever the
    /// causal alignment. Panics when a size is 0.
    ///
    /// # Shapes
    ///
    /// `visible`: `[batch or 1, heads_q or 1, ⌈len_q / queries⌉ or 1, ⌈len_kv / keys⌉ or 1]`: dimensions of size 1 are
    /// broadcast.
    ///
    /// # Cost
    ///
    /// On the CPU backends, time in proportion to what is visible, for blocks of 32 keys or more; the table is never expanded.
    /// GPUs skip tiles that the table hides, of 64 queries and keys or, on matrix units, of 32 to 128, but not in the kernels
    /// for at most four queries. The other backends expand the table block by block.
    ///
    /// # Source
    ///
    /// Child et al., "Sparse transformers" (arXiv:1904.10509), section 5.5; Zaheer et al., "Big Bird" (arXiv:2007.14062),
    /// appendix D. PyTorch equivalent: the `BlockMask` of `torch.nn.attention.flex_attention`.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use burn_attn_ops::AttentionMask;
    ///
    /// // 256 queries and keys, in blocks of 64: each block sees itself, and all see the first.
    /// let visible = [[true, false, false, false], [true, true, false, false], [true, false, true, false], [true, false, false, true]];
    /// let visible = Tensor::from_data([[visible]], &Device::default());
    /// let mask = AttentionMask::visible_blocks(visible, 64).and(AttentionMask::causal());
    /// ```
    pub fn visible_blocks(visible: Tensor<4, Bool>, size: impl Into<BlockSize>) -> Self {
        let (table, size) = (visible, size.into());
        check_size(size);
        Self {
            visible_blocks: vec![VisibleBlocks { table, size }],
            ..Self::default()
        }
    }

    /// A dense mask, `[batch or 1, heads_q or 1, len_q or 1, len_kv or 1]`, in which `true` hides a key: the meaning of Burn's masks and of
    /// both masks of PyTorch's `nn.MultiheadAttention`. Dimensions of size 1 are broadcast.
    pub fn masked(masked: Tensor<4, Bool>) -> Self {
        Self {
            masked: Some(masked),
            ..Self::default()
        }
    }

    /// A dense mask in which `true` shows a key: the meaning of `attn_mask` in PyTorch's `scaled_dot_product_attention`. Its shape
    /// is that of [`masked`](Self::masked).
    pub fn visible(visible: Tensor<4, Bool>) -> Self {
        Self::masked(visible.bool_not())
    }

    /// Shows a key only if both masks show it.
    ///
    /// Every part keeps its kind, with one exception: of two packings, one becomes a dense mask. Tables of blocks become one
    /// table, in blocks of the greatest common divisor of their sizes; the table stays small if the sizes are equal or divide
    /// each other.
    ///
    /// # Panics
    ///
    /// When the masks [name](Self::causal_aligned) different causal alignments, when dense masks do not broadcast against each
    /// other, when the numbers of key lengths differ, or when what becomes one tensor is on two devices.
    pub fn and(mut self, other: Self) -> Self {
        let named = self.common_alignment(&other);
        self.visible_blocks.extend(other.visible_blocks);
        self.padding.extend(other.padding);
        self.dense_segments.extend(other.dense_segments);
        self.functions.extend(other.functions);
        self.unions.extend(other.unions);
        let (segments, second_segments) = match (self.segments, other.segments) {
            (None, one) | (one, None) => (one, None),
            (first, second) => (first, second),
        };
        let second_segments = second_segments.map(|segments| {
            self.dense_segments.push(segments.dims());
            segments.masked()
        });
        let dense = merge(self.masked, other.masked, either_hides);
        let (first, second) = (self.by_position, other.by_position);
        Self {
            by_position: PositionMask {
                causal: merge(first.causal, second.causal, |first, _| first)
                    .map(|alignment| named.unwrap_or(alignment)),
                window: merge(first.window, second.window, |first, second| Window {
                    left: merge(first.left, second.left, usize::min),
                    right: merge(first.right, second.right, usize::min),
                }),
            },
            alignment_is_named: self.alignment_is_named || other.alignment_is_named,
            key_lengths: merge(self.key_lengths, other.key_lengths, |first, second| {
                let ([first_batch], [second_batch]) = (first.dims(), second.dims());
                assert!(
                    first_batch == second_batch,
                    "masks of {first_batch} and {second_batch} key lengths belong to different batches"
                );
                are_one(&first.device(), &second.device());
                let dtype = common_type(first.dtype(), second.dtype());
                first.cast(dtype).min_pair(second.cast(dtype))
            }),
            segments,
            masked: merge(dense, second_segments, either_hides),
            ..self
        }
    }

    /// Shows a key if one of the masks shows it. The result can be one of several parts, by [`and`](Self::and), and of another union.
    /// An alignment that [one](Self::causal_aligned) of the masks names is that of all masks in the call.
    ///
    /// A union of a mask by position with [`key_lengths`](Self::key_lengths) is structural: an implementation can skip what it
    /// hides, and it takes no memory. It stays so beside any mask that is no [`window`](Self::window); of several such unions, one does. Any
    /// other union becomes a dense mask in the call of attention, of the dimensions that its parts have; what it hides whole is skipped
    /// too.
    ///
    /// A causal module hides the later tokens whatever a union shows: a prefix language model needs a module that is not causal, and
    /// thus no cache.
    ///
    /// # Panics
    ///
    /// When the masks [name](Self::causal_aligned) different causal alignments.
    /// The call of attention panics, as for both masks, if a tensor does not have the shape that its constructor names.
    ///
    /// # Source
    ///
    /// PyTorch equivalent: `or_masks` of `torch.nn.attention.flex_attention`.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use burn_attn_ops::AttentionMask;
    ///
    /// let device = Device::default();
    /// let first = |counts| AttentionMask::key_lengths(Tensor::from_data(counts, &device));
    /// // A prefix language model: the first 7 and 4 tokens see each other, the others are causal.
    /// let prefix = AttentionMask::causal().or(first([7, 4]));
    /// // A window, and the first four tokens (attention sinks), both causal.
    /// let window = AttentionMask::window(255, 0).or(first([4, 4])).and(AttentionMask::causal());
    /// ```
    pub fn or(self, other: Self) -> Self {
        self.common_alignment(&other);
        Self {
            unions: vec![[self, other]],
            ..Self::default()
        }
    }

    /// Whether a part counts from the positions of the queries.
    pub(crate) fn counts_positions(&self) -> bool {
        let counts =
            |mask: &Self| mask.by_position != PositionMask::default() || !mask.functions.is_empty();
        self.any(&counts)
    }

    /// The causal alignment, if [`causal_aligned`](Self::causal_aligned) named it, alone or in a union.
    pub fn named_alignment(&self) -> Option<CausalAlignment> {
        let named = self.by_position.causal.filter(|_| self.alignment_is_named);
        let mut in_unions = self.unions.iter().flatten();
        named.or_else(|| in_unions.find_map(Self::named_alignment))
    }

    /// The alignment that one of two masks names. Panics if they name different ones.
    fn common_alignment(&self, other: &Self) -> Option<CausalAlignment> {
        let named = [self, other].map(Self::named_alignment);
        if let [Some(first), Some(second)] = named {
            assert!(
                first == second,
                "a mask has one causal alignment, but {first:?} and {second:?} were combined"
            );
        }
        named[0].or(named[1])
    }

    /// The [`key_lengths`](Self::key_lengths), if they are part of the mask. Panics when there is not one for each of `batch` sequences.
    pub fn lengths(&self, batch: usize) -> Option<&Tensor<1, Int>> {
        let lengths = self.key_lengths.as_ref()?;
        let [count] = lengths.dims();
        assert!(
            count == batch,
            "attention: {count} key lengths were given for a batch of {batch}"
        );
        Some(lengths)
    }

    /// Whether there is no part, so that nothing is hidden.
    pub fn is_none(&self) -> bool {
        self.by_position == PositionMask::default()
            && self.key_lengths.is_none()
            && self.segments.is_none()
            && self.visible_blocks.is_empty()
            && self.masked.is_none()
            && self.functions.is_empty()
            && self.unions.is_empty()
    }
}

/// Combines two values by `both`; a single value is kept.
fn merge<T>(first: Option<T>, second: Option<T>, both: impl FnOnce(T, T) -> T) -> Option<T> {
    match (first, second) {
        (Some(first), Some(second)) => Some(both(first, second)),
        (one, None) | (None, one) => one,
    }
}

/// Hidden in either of two dense masks, broadcast against each other.
fn either_hides(first: Tensor<4, Bool>, second: Tensor<4, Bool>) -> Tensor<4, Bool> {
    are_one(&first.device(), &second.device());
    let dims = broadcast_dims(first.dims(), second.dims());
    if dims.contains(&0) {
        return of_nothing(dims, &first.device());
    }
    let [first, second] = [first, second].map(|mask| of_device::<Dispatch>(mask.into_dispatch()));
    Tensor::from_dispatch(either::<Dispatch>(first, second))
}
