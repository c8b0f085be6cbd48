//! Everything about one attention call that is not query, key or value.

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
    /// Drops attention weights after the softmax. Default: none.
    pub dropout: Option<Dropout>,
}

impl AttentionOptions {
    /// Replaces the mask.
    pub fn mask(mut self, mask: AttentionMask) -> Self {
        self.mask = mask;
        self
    }

    /// Also hides every key that comes after its query; the last query is aligned with the last key.
    pub fn causal(mut self) -> Self {
        self.mask = self.mask.and(AttentionMask::causal());
        self
    }

    /// Adds `bias` to the scores.
    pub fn bias(mut self, bias: AttentionBias) -> Self {
        self.bias = Some(bias);
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

    /// Drops each attention weight with probability `probability`; the same `seed` drops the same weights on every
    /// backend.
    pub fn dropout(mut self, probability: f64, seed: u64) -> Self {
        self.dropout = Some(Dropout { probability, seed });
        self
    }
}
