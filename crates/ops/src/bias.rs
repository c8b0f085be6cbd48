//! What is added to the scores.

use burn::tensor::Tensor;

/// An additive bias on the scores, applied after scale and softcap and before the softmax.
///
/// PyTorch equivalent: a float `attn_mask` of `scaled_dot_product_attention`.
#[derive(Clone, Debug)]
pub struct AttentionBias {
    pub(crate) dense: Tensor<4>,
}

impl AttentionBias {
    /// A bias tensor, with its gradient if it is tracked.
    ///
    /// # Shapes
    ///
    /// `[batch or 1, heads_q or 1, len_q or 1, len_kv or 1]`: dimensions of size 1 are broadcast.
    pub fn dense(bias: Tensor<4>) -> Self {
        Self { dense: bias }
    }
}
