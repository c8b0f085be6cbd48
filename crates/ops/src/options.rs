//! Everything about one attention call that is not query, key or value.

use burn::tensor::{Int, Tensor};
use burn_attn_kernels_cpu::Dropout;

use crate::{AttentionBias, AttentionMask};

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
pub struct AttentionOptions {
    /// Which keys each query may see. Default: all.
    pub mask: AttentionMask,
    /// What is added to the scores after scale and softcap. Default: nothing.
    pub bias: Option<AttentionBias>,
    /// Factor on the dot products. Default: `1 / √dim_qk`.
    pub scale: Option<f64>,
    /// Scores are squashed to `softcap · tanh(score / softcap)`. Default: not at all.
    pub softcap: Option<f64>,
    /// `[heads_q]`: a score per head that joins the softmax of every row and has no value. Default: none.
    pub sinks: Option<Tensor<1>>,
    /// `[batch]`: the place of each batch item's first query on the axis of its keys, in tokens; see
    /// [`query_offsets`](method@Self::query_offsets) for what happens out of range. Default: what the causal alignment says, the same
    /// for all.
    pub query_offsets: Option<Tensor<1, Int>>,
    /// Drops attention weights after the softmax. Default: none.
    pub dropout: Option<Dropout>,
}

impl AttentionOptions {
    /// Also hides what `mask` hides: [`AttentionMask::and`] says how masks of one kind go together, and when they panic.
    pub fn mask(mut self, mask: AttentionMask) -> Self {
        self.mask = self.mask.and(mask);
        self
    }

    /// Also hides every key that comes after its query; the last query is aligned with the last key.
    pub fn causal(self) -> Self {
        self.mask(AttentionMask::causal())
    }

    /// Adds `bias` to the scores, beside the biases that are there.
    pub fn bias(mut self, bias: AttentionBias) -> Self {
        self.bias = Some(match self.bias {
            Some(earlier) => earlier.and(bias),
            None => bias,
        });
        self
    }

    /// Multiplies the dot products by `scale` instead of `1 / √dim_qk`.
    pub fn scale(mut self, scale: f64) -> Self {
        self.scale = Some(scale);
        self
    }

    /// Squashes the scores into `(−softcap, softcap)` before mask and bias (Gemma 2, arXiv:2408.00118, section 2).
    pub fn softcap(mut self, softcap: f64) -> Self {
        self.softcap = Some(softcap);
        self
    }

    /// Lets a row attend to nothing: `exp(sinks[h])` joins the denominator of the softmax, so that the weights of a row
    /// add up to less than one. A query that sees no key has output 0 and the sink as its logsumexp.
    ///
    /// # Shapes
    ///
    /// `sinks`: `[heads_q]`, with their gradient if they are tracked; −∞ is no sink, 0 is the "off-by-one" softmax.
    ///
    /// Source: Xiao et al., "Efficient streaming language models with attention sinks" (arXiv:2309.17453), section 3.3;
    /// learned, as here, in gpt-oss (arXiv:2508.10925).
    pub fn sinks(mut self, sinks: Tensor<1>) -> Self {
        self.sinks = Some(sinks);
        self
    }

    /// Places query `i` of batch item `b` at key `offsets[b] + i`: causal masks, windows, ALiBi and the relative bias count from there,
    /// so that a batch of sequences of unequal lengths is one call. Alone, offsets hide nothing.
    ///
    /// A cache whose sequence `b` holds `lengths[b]` tokens before the new ones decodes with offsets `lengths`, a causal mask and
    /// key lengths `lengths + len_q`. FlashAttention calls them `cache_seqlens`.
    ///
    /// # Shapes
    ///
    /// `offsets`: `[batch]`, each from `−len_q` (the last query stands before the first key) to `len_kv` (the first query stands
    /// behind the last key).
    ///
    /// # Panics
    ///
    /// In the call of attention: when there are not `batch` of them; on flex and ndarray also when one is out of range, and the
    /// message has its batch item and its value. On every other backend, Burn's `cpu` and LibTorch included, reading them would
    /// wait for the device: there an offset out of range is clamped, `−len_q` for what is lower and `len_kv` for what is greater,
    /// after a cast to the default integer type of the device.
    pub fn query_offsets(mut self, offsets: Tensor<1, Int>) -> Self {
        self.query_offsets = Some(offsets);
        self
    }

    /// Drops each attention weight with probability `probability`; the same `seed` drops the same weights on every
    /// backend.
    pub fn dropout(mut self, probability: f64, seed: u64) -> Self {
        self.dropout = Some(Dropout { probability, seed });
        self
    }
}
