//! Biases on the scores.

use burn::tensor::{Device, Tensor};
use burn_attn_kernels_cpu::RelativeBuckets;

/// An additive bias on the scores, applied after scale and softcap and before the softmax: a sum of parts.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_attn_ops::{AttentionBias, RelativeBuckets};
///
/// let device = Device::default();
/// let alibi = AttentionBias::paper_alibi(8, &device);
///
/// let buckets = RelativeBuckets { buckets: 32, max_distance: 128, bidirectional: true };
/// let table = Tensor::zeros([32, 8], &device); // a learned parameter
/// let both = alibi.and(AttentionBias::relative(table, buckets));
/// ```
///
/// PyTorch equivalent: a float `attn_mask` of `scaled_dot_product_attention`, or a `score_mod` of `flex_attention` that
/// adds. All parts but a dense one need no memory of the size of the scores. In a call without scores, tracked parts have no gradient. The call of attention panics, with one sentence, if a
/// part does not fit its shapes or the buckets of a relative bias are not valid ([`RelativeBuckets::validate`]).
#[derive(Clone, Debug, Default)]
pub struct AttentionBias {
    pub(crate) dense: Vec<Tensor<4>>,
    pub(crate) by_distance: Vec<DistancePart>,
}

/// A part that depends only on the distance between query and key.
#[derive(Clone, Debug)]
pub(crate) enum DistancePart {
    /// ALiBi with these slopes, `[heads_q]`.
    Alibi(Tensor<1>),
    /// ALiBi with the slopes of the paper for a number of heads.
    PaperAlibi(usize, Device),
    /// T5's relative bias with a table `[buckets, heads_q]`.
    Relative(Tensor<2>, RelativeBuckets),
    /// A number for every distance.
    Numbers(Tensor<2>),
}

impl AttentionBias {
    /// No bias.
    pub fn none() -> Self {
        Self::default()
    }

    /// Whether there is no bias.
    pub fn is_none(&self) -> bool {
        self.dense.is_empty() && self.by_distance.is_empty()
    }

    /// A bias tensor, `[batch or 1, heads_q or 1, len_q or 1, len_kv or 1]`, with its gradient if it is tracked. Dimensions of size 1 are
    /// broadcast, without being expanded to the shape of the scores. An entry of −∞ hides its key.
    pub fn dense(bias: Tensor<4>) -> Self {
        Self {
            dense: vec![bias],
            ..Self::default()
        }
    }

    /// ALiBi: adds `−slopes[h] · |j − position(i)|`, a penalty that grows with the distance between query and key (tokens), for slopes
    /// `[heads_q]`. It takes `heads_q · (len_q + len_kv)` numbers of memory.
    ///
    /// The last query is at the position of the last key (bottom-right); with a causal mask aligned top-left, the first query
    /// is at that of the first key. Modules of `burn-attn` place their queries by `QueryOffset` instead.
    /// [`paper_alibi`](Self::paper_alibi) has the slopes of the paper. Tracked slopes get a gradient.
    ///
    /// # Source
    ///
    /// Press et al., "Train short, test long" (arXiv:2108.12409), section 3.
    pub fn alibi(slopes: Tensor<1>) -> Self {
        Self::by_distance(DistancePart::Alibi(slopes))
    }

    /// [`alibi`](Self::alibi) with the slopes of the paper for `heads` query heads, [`alibi_slopes`](crate::alibi_slopes), in
    /// the precision of the scores.
    pub fn paper_alibi(heads: usize, device: &Device) -> Self {
        Self::by_distance(DistancePart::PaperAlibi(heads, device.clone()))
    }

    /// T5's relative bias: `table[bucket(j − position(i)), h]` of a table `[buckets, heads_q]`, with its gradient if the table is tracked.
    /// It takes `heads_q · (len_q + len_kv)` numbers of memory.
    ///
    /// Positions are those of [`alibi`](Self::alibi). An entry of −∞ hides the keys in its bucket. T5 itself does not
    /// scale its scores: add `.scale(1.0)`.
    ///
    /// # Source
    ///
    /// Raffel et al., "Exploring the limits of transfer learning" (arXiv:1910.10683), section 2.1. PyTorch equivalent:
    /// `T5Attention.compute_bias` of Hugging Face's `transformers`, whose `relative_attention_bias.weight` is the table.
    pub fn relative(table: Tensor<2>, buckets: RelativeBuckets) -> Self {
        Self::by_distance(DistancePart::Relative(table, buckets))
    }

    /// Any bias by distance, one number per head and distance, with its gradient if it is tracked.
    ///
    /// Entry `e` of a head is added to the score of a key that is `zero − e` tokens after its query (before it, if negative).
    /// An entry of −∞ hides its keys.
    ///
    /// # Shapes
    ///
    /// `[heads_q, 2 · (len_q + len_kv) − 1]`, where `zero` is `len_q + len_kv − 1`. Without
    /// [`query_offsets`](crate::AttentionOptions::query_offsets) the distances that occur are enough:
    /// `[heads_q, len_q + len_kv − 1]`, where `zero` is `len_q − 1` if the last query is at the position of the last key, and
    /// `len_kv − 1` if the first query is at that of the first key. Modules of `burn-attn` need the first form where `len_q != len_kv`, and
    /// always beside a cache.
    ///
    /// # Cost
    ///
    /// Memory and adding are linear in the lengths. In half precision a gradient (of ALiBi's slopes and T5's table, too)
    /// needs an output that is not rounded: with a rounded one, errors of 1 to 6 % were measured in bf16. Except by the GPU kernels, it is computed once
    /// more, in f32.
    ///
    /// # Source
    ///
    /// Shaw et al., "Self-attention with relative position representations" (arXiv:1803.02155), in the form of a bias:
    /// Raffel et al. (arXiv:1910.10683), section 2.1.
    pub fn distances(numbers: Tensor<2>) -> Self {
        Self::by_distance(DistancePart::Numbers(numbers))
    }

    /// The sum of both biases: every part is added to the scores, even two of the same kind.
    ///
    /// Dense parts of different shapes are broadcast against each other.
    pub fn and(mut self, other: Self) -> Self {
        self.dense.extend(other.dense);
        self.by_distance.extend(other.by_distance);
        self
    }

    fn by_distance(part: DistancePart) -> Self {
        Self {
            by_distance: vec![part],
            ..Self::default()
        }
    }
}
