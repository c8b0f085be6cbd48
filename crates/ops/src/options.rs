//! The options of attention.

use burn::tensor::{Int, Tensor};
use burn_attn_kernels_cpu::AttentionDropout;

use crate::{AttentionBias, AttentionMask, ScoreFunction};

/// How one call of [`attention`](crate::attention) deviates from plain `softmax(q·kᵀ / √dim)·v`.
///
/// ```
/// use burn::tensor::Device;
/// use burn_attn_ops::{AttentionMask, AttentionOptions};
///
/// let options = AttentionOptions::default().causal().softcap(30.0);
/// let options = AttentionOptions::default().mask(AttentionMask::window(256, 0)).scale(1.0);
/// ```
///
/// PyTorch equivalent: the keyword arguments of `scaled_dot_product_attention`.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct AttentionOptions {
    /// Which keys each query may see. Default: all.
    pub mask: AttentionMask,
    /// What is added to the scores after scale and softcap. Default: nothing.
    pub bias: AttentionBias,
    /// What changes the scores between scale and softcap. Default: nothing.
    pub score_function: Option<ScoreFunction>,
    /// Factor on the dot products. Default: `1 / √dim_qk`.
    pub scale: Option<f64>,
    /// Bounds the scores: `softcap · tanh(score / softcap)`. Default: no bound.
    pub softcap: Option<f64>,
    /// `[heads_q]`: one score per head that joins the softmax of every row and has no value. Default: none.
    pub sinks: Option<Tensor<1>>,
    /// `[batch]`: the position of each batch item's first query on the axis of its keys, in tokens; see
    /// [`query_offsets`](method@Self::query_offsets) for values out of range. Default: for every item, the position given by the
    /// causal alignment.
    pub query_offsets: Option<Tensor<1, Int>>,
    /// Drops attention weights after the softmax, in training and outside; see [`dropout`](method@Self::dropout) for the seed. Default: none.
    pub dropout: Option<AttentionDropout>,
}

impl AttentionOptions {
    /// Also hides what `mask` hides. [`AttentionMask::and`] says how masks of one kind combine, and panics when two cannot.
    pub fn mask(mut self, mask: AttentionMask) -> Self {
        self.mask = self.mask.and(mask);
        self
    }

    /// Also hides every key that comes after its query, as [`AttentionMask::causal`] does.
    pub fn causal(self) -> Self {
        self.mask(AttentionMask::causal())
    }

    /// Adds `bias` to the scores, on top of the biases given before.
    pub fn bias(mut self, bias: AttentionBias) -> Self {
        self.bias = self.bias.and(bias);
        self
    }

    /// Changes the scaled scores by `function`, before softcap, mask and bias, in place of a function given before.
    pub fn score_function(mut self, function: ScoreFunction) -> Self {
        self.score_function = Some(function);
        self
    }

    /// Multiplies the dot products by `scale` instead of `1 / √dim_qk`. The call of attention panics unless `scale` is finite.
    pub fn scale(mut self, scale: f64) -> Self {
        self.scale = Some(scale);
        self
    }

    /// Bounds the scores to `(−softcap, softcap)` before mask and bias (Gemma 2, arXiv:2408.00118, section 2). The call of
    /// attention panics unless `softcap` is positive and finite.
    pub fn softcap(mut self, softcap: f64) -> Self {
        self.softcap = Some(softcap);
        self
    }

    /// Lets a query attend to nothing: `exp(sinks[h])`, of sinks `[heads_q]`, joins the denominator of the softmax, so the weights of a row
    /// add up to less than one. A query that sees no key has output 0 and the sink as its logsumexp.
    ///
    /// The call of attention panics for another number of sinks. Tracked sinks get a gradient. −∞ means no sink, 0 the "off-by-one" softmax.
    ///
    /// # Source
    ///
    /// Xiao et al., "Efficient streaming language models with attention sinks" (arXiv:2309.17453), section 3.3;
    /// learned, as here, in gpt-oss (arXiv:2508.10925).
    pub fn sinks(mut self, sinks: Tensor<1>) -> Self {
        self.sinks = Some(sinks);
        self
    }

    /// Places query `i` of batch item `b` at key `offsets[b] + i`: causal masks, windows, ALiBi and the relative bias count
    /// from that key, so a batch of sequences of unequal lengths is one call. Offsets alone hide nothing.
    ///
    /// A cache whose sequence `b` holds `lengths[b]` tokens before the new ones decodes with offsets `lengths`, a causal mask
    /// and key lengths `lengths + len_q`. FlashAttention calls the offsets `cache_seqlens` in calls with new keys. The offsets
    /// replace the causal alignment, top-left included.
    ///
    /// # Shapes
    ///
    /// `offsets`: `[batch]`, each from `−len_q` (the last query is before the first key) to `len_kv` (the first query is after
    /// the last key).
    ///
    /// # Panics
    ///
    /// In the call of attention, when there are not `batch` offsets; on flex and ndarray also when an offset is out of range,
    /// with its batch item and value in the message. On every other backend, Burn's `cpu` and LibTorch included, a check would
    /// wait for the device: there, the offsets are cast to integers of 32 or 64 bits and clamped to the range.
    pub fn query_offsets(mut self, offsets: Tensor<1, Int>) -> Self {
        self.query_offsets = Some(offsets);
        self
    }

    /// Drops each attention weight with probability `probability`; the same `seed` drops the same weights on every
    /// backend. The call of attention panics unless the probability is in `[0, 1)`.
    ///
    /// Take a seed for every call from [`next_dropout_seed`](crate::next_dropout_seed), as the modules of `burn-attn` do: with a constant, all steps and
    /// all layers of equal sizes drop the same weights. Every call drops, even outside training.
    ///
    /// ```
    /// use burn_attn_ops::{AttentionOptions, next_dropout_seed};
    ///
    /// let options = AttentionOptions::default().dropout(0.1, next_dropout_seed()); // for one call
    /// ```
    ///
    /// # Source
    ///
    /// PyTorch equivalent: `dropout_p` of `scaled_dot_product_attention`, which draws the seed itself.
    pub fn dropout(mut self, probability: f64, seed: u64) -> Self {
        self.dropout = Some(AttentionDropout { probability, seed });
        self
    }
}
